#include "values.h"

#include <bit>

namespace slalom::vm::diff {

uint64_t Values::integer() {
  switch (below(12)) {
    case 0:
      return below(4);
    case 1:
      return below(72);  // shift counts and slightly more
    case 2:
      return -uint64_t{below(72)};
    case 3:
      return (uint64_t{1} << below(64)) + below(3) - 1;  // edges of every width
    case 4:
      return -(uint64_t{1} << below(64)) + below(3) - 1;
    case 5:
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(any())));
    case 6:
      return static_cast<uint32_t>(any());
    case 7:
      return any() & any() & any();
    case 8:
      return any() | any() | any();
    case 9:
      return uint64_t{0x0101010101010101} * (any() & 0xff);
    case 10: {  // an edge in the low part, random above
      const unsigned width = 8u << below(3);
      const uint64_t mask = (uint64_t{1} << width) - 1;
      const uint64_t edges[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1, mask - 1};
      return (any() & ~mask) | edges[below(6)];
    }
    default:
      return any();
  }
}

uint64_t Values::address(unsigned size, bool aligned) {
  const uint64_t span = kWritable - size;
  uint64_t at;
  switch (below(aligned ? 12 : 16)) {
    case 0:
      at = kWritable - size;
      break;  // the last address that fits
    case 1:
      at = kWritable + below(kPage - 64);
      break;  // read-only
    case 2:
      at = kDataSize - below(64);
      break;  // ends behind the last page, or just before its end
    case 3:
      at = -uint64_t{below(64)};
      break;  // begins before the first page
    case 4:
      if (!chance(12)) {
        at = below(static_cast<unsigned>(span));
        break;
      }
      return chance(50) ? integer()
                        : (uint64_t{1} << 47) - below(64) + (chance(50) ? uint64_t{0xffff} << 48 : 0);
    case 12:
      at = kPage - size + below(size + 1);
      break;  // across two pages
    case 13:
      at = kWritable - size + below(2 * size + 1);
      break;
    default:
      at = below(static_cast<unsigned>(span));
      break;
  }
  const uint64_t address = kData + at;
  return aligned || chance(70) ? address & ~uint64_t{std::bit_ceil(size) - 1} : address;
}

uint64_t Values::selector() {
  constexpr uint16_t known[] = {0,    1,    2,    3,    0x23, 0x2b, 0x33, 0x2b, 0x2b,   0x33,
                                0x23, 0x20, 0x28, 0x29, 0x2a, 0x30, 7,    0x2f, 0xfff8, 0xffff};
  return (any() & ~uint64_t{0xffff}) | known[below(sizeof known / sizeof *known)];
}

uint32_t Values::single_bits() {
  const uint32_t sign = static_cast<uint32_t>(any()) & 0x80000000;
  constexpr uint32_t edges[] = {0,          1,          0x007fffff, 0x00800000, 0x3f800000,
                                0x3f7fffff, 0x3f000000, 0x7f7fffff, 0x7f800000, 0x7f800001,
                                0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x4f000000, 0x4effffff,
                                0x5f000000, 0x3fc00000, 0x40200000, 0x4b000000, 0x4b800000};
  switch (below(6)) {
    case 0:
    case 1:
      return sign | edges[below(sizeof edges / sizeof *edges)];
    case 2:
      return sign | std::bit_cast<uint32_t>(static_cast<float>(below(2000)) / 8);
    case 3:
      return sign | (static_cast<uint32_t>(any()) & 0x007fffff) | (117 + below(20)) << 23;
    default:
      return static_cast<uint32_t>(any());
  }
}

uint64_t Values::double_bits() {
  const uint64_t sign = any() & (uint64_t{1} << 63);
  constexpr uint64_t edges[] = {0,
                                1,
                                0x000fffffffffffff,
                                0x0010000000000000,
                                0x3ff0000000000000,
                                0x3fefffffffffffff,
                                0x3fe0000000000000,
                                0x7fefffffffffffff,
                                0x7ff0000000000000,
                                0x7ff0000000000001,
                                0x7ff7ffffffffffff,
                                0x7ff8000000000000,
                                0x7fffffffffffffff,
                                0x41dfffffffc00000,
                                0x41e0000000000000,
                                0x43dfffffffffffff,
                                0x43e0000000000000,
                                0x3ff8000000000000,
                                0x47efffffe0000000,
                                0x47efffffefffffff,
                                0x47effffff0000000,
                                0x3690000000000000,
                                0x380fffffc0000000};
  switch (below(6)) {
    case 0:
    case 1:
      return sign | edges[below(sizeof edges / sizeof *edges)];
    case 2:
      return sign | std::bit_cast<uint64_t>(static_cast<double>(below(2000)) / 8);
    case 3:
      return sign | (any() & 0x000fffffffffffff) | uint64_t{1013 + below(20)} << 52;
    case 4:
      return sign | (any() & 0x000fffffffffffff) | uint64_t{1023 - 160 + below(320)} << 52;
    default:
      return any();
  }
}

void Values::extended(uint8_t* out) {
  uint64_t significand = any() | uint64_t{1} << 63;
  uint16_t exponent = static_cast<uint16_t>(16383 - 64 + below(128));
  switch (below(8)) {
    case 0:
      significand = 0, exponent = 0;
      break;
    case 1:
      significand = uint64_t{1} << 63,
      exponent = static_cast<uint16_t>(chance(50) ? 0x7fff : 16383 + below(8));
      break;
    case 2:
      exponent = 0x7fff, significand = chance(50) ? any() | uint64_t{3} << 62
                                                  : (any() & ~(uint64_t{1} << 62)) | uint64_t{1} << 63;
      break;
    case 3:
      exponent = static_cast<uint16_t>(chance(50) ? below(3) : 0x7ffe - below(3));
      break;
    case 4:
      exponent = static_cast<uint16_t>(chance(20) ? any() & 0x7fff : 0);
      significand = any() >> below(64);
      break;
    case 5: {  // an integer
      const uint64_t value = 1 + below(5000);
      const int shift = std::countl_zero(value);
      significand = value << shift;
      exponent = static_cast<uint16_t>(16383 + 63 - shift);
      break;
    }
    default:
      break;
  }
  if (chance(50)) exponent |= 0x8000;
  std::memcpy(out, &significand, 8);
  std::memcpy(out + 8, &exponent, 2);
}

uint64_t Values::vector_half() {
  switch (below(4)) {
    case 0:
      return integer();
    case 1:
      return double_bits();
    case 2:
      return uint64_t{single_bits()} << 32 | single_bits();
    default:
      return chance(50) ? any() : uint64_t{single_bits()} * 0x100000001;
  }
}

uint64_t Values::flags() {
  uint64_t value = any() & 0x8d5;
  if (chance(10)) value |= 0x400;   // direction
  if (chance(3)) value |= 1 << 21;  // ID
  return value;
}

void Values::floats(FloatState& state, bool x87, bool mmx) {
  uint16_t control = 0x37f, status = 0;
  uint8_t tags = 0;
  if (x87 || mmx) {
    if (chance(40)) control = static_cast<uint16_t>((control & ~0xf00) | below(16) << 8);
    if (chance(15)) control &= static_cast<uint16_t>(~below(64));
    status = static_cast<uint16_t>(below(8) << 11);
    if (chance(30)) status |= static_cast<uint16_t>(any() & 0x4700);
    if (chance(20)) status |= static_cast<uint16_t>(any() & 0x7f & (chance(70) ? control | 0x40 : 0x7f));
    if ((status & ~control & 0x3f) != 0) status |= 0x8080;
    tags = static_cast<uint8_t>(chance(75) ? 0xff : chance(30) ? 0 : any());
    for (unsigned i = 0; i < 8; ++i) {
      uint8_t* place = state.bytes.data() + FloatState::kStack + 16 * i;
      if (mmx) {
        const uint64_t half = vector_half();
        std::memcpy(place, &half, 8);
        place[8] = place[9] = 0xff;
      } else {
        extended(place);
      }
    }
  }
  state.set(FloatState::kControl, control);
  state.set(FloatState::kStatus, status);
  state.set(FloatState::kTags, tags);
  uint32_t mxcsr = 0x1f80;
  if (chance(40)) mxcsr |= below(4) << 13;
  if (chance(10)) mxcsr |= 0x8000;
  if (chance(10)) mxcsr |= 0x40;
  if (chance(10)) mxcsr &= ~(below(64) << 7);
  if (chance(20)) mxcsr |= below(64);
  state.set(FloatState::kMxcsr, mxcsr);
  for (unsigned i = 0; i < 32; ++i) state.set(FloatState::kXmm + 8 * i, vector_half());
}

void Values::background(Background& page) {
  for (size_t at = 0; at < page.size(); at += 8) {
    const uint64_t value = chance(10)   ? address(8, false)
                           : chance(20) ? kCode + below(kCodeSize)
                                        : vector_half();
    std::memcpy(page.data() + at, &value, 8);
  }
}

}  // namespace slalom::vm::diff
