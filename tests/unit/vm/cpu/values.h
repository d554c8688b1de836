// Operands that are likely to reveal errors: edge values of every format, their neighbours, and random
// values.
#pragma once

#include <iterator>

#include "base/rng.h"
#include "unit/vm/cpu/host_cpu.h"

namespace slalom::vm {

class Values {
 public:
  explicit Values(uint64_t seed) : rng_(seed, 87) {}

  uint64_t below(uint64_t bound) { return rng_.below(bound); }
  uint64_t random() { return rng_.next(); }

  uint64_t integer() {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          2,
                                          7,
                                          8,
                                          15,
                                          16,
                                          31,
                                          32,
                                          63,
                                          64,
                                          127,
                                          128,
                                          255,
                                          256,
                                          0x7fff,
                                          0x8000,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          ~uint64_t{0},
                                          ~uint64_t{1}};
    switch (below(3)) {
      case 0:
        return kEdges[below(std::size(kEdges))];
      case 1:
        return random() >> below(64);
      default:
        return random();
    }
  }

  uint32_t single() {
    static constexpr uint32_t kEdges[] = {
        0,          1,          0x7fffff,   0x800000,   0x800001,   0x3f800000, 0x3f800001, 0x3f7fffff,
        0x40000000, 0x3f000000, 0x4f000000, 0x4effffff, 0x5f000000, 0x5effffff, 0x7f7fffff, 0x7f800000,
        0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x400001,   0x4b000001, 0x4affffff, 0x40490fdb};
    const auto sign = static_cast<uint32_t>(below(2) << 31);
    switch (below(4)) {
      case 0:
        return static_cast<uint32_t>(random());
      case 1:
        return sign | static_cast<uint32_t>((64 + below(128)) << 23 | (random() & 0x7fffff));
      default:
        return sign | kEdges[below(std::size(kEdges))];
    }
  }

  uint64_t real() {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          0xfffffffffffff,
                                          0x10000000000000,
                                          0x3ff0000000000000,
                                          0x3ff0000000000001,
                                          0x3fefffffffffffff,
                                          0x4000000000000000,
                                          0x3fe0000000000000,
                                          0x41e0000000000000,
                                          0x41dfffffffc00000,
                                          0x41dfffffffe00000,
                                          0x43e0000000000000,
                                          0x43dfffffffffffff,
                                          0x7fefffffffffffff,
                                          0x7ff0000000000000,
                                          0x7ff0000000000001,
                                          0x7ff7ffffffffffff,
                                          0x7ff8000000000000,
                                          0x7fffffffffffffff,
                                          0x380fffffffffffff,
                                          0x3810000000000000,
                                          0x36a0000000000000,
                                          0x47efffffe0000000,
                                          0x47efffffefffffff,
                                          0x47f0000000000000,
                                          0x4330000000000001,
                                          0x3fe0000000000001};
    const uint64_t sign = below(2) << 63;
    switch (below(4)) {
      case 0:
        return random();
      case 1:
        return sign | (960 + below(128)) << 52 | (random() >> 12);
      default:
        return sign | kEdges[below(std::size(kEdges))];
    }
  }

  FxImage::Slot vector() {
    switch (below(4)) {
      case 0:
        return {integer(), integer()};
      case 1:
        return {real(), real()};
      case 2:
        return {single() | uint64_t{single()} << 32, single() | uint64_t{single()} << 32};
      default:
        return {random(), random()};
    }
  }

  uint64_t flags() { return flag::kFixed | flag::kInterrupt | (random() & flag::kArithmetic); }

  uint32_t mxcsr(bool unmasked) {
    const auto modes = static_cast<uint32_t>(below(2) != 0 ? 0 : random() & 0xe040);
    if (!unmasked) return 0x1f80 | modes | static_cast<uint32_t>(below(2) != 0 ? 0 : random() & 0x3f);
    return modes | static_cast<uint32_t>(random() & 0x1f80);
  }

  // An x87 state without pending exceptions.
  FxImage masked_x87() {
    FxImage image;
    image.control = static_cast<uint16_t>(0x7f | (random() & 0xf00));
    image.status = static_cast<uint16_t>(random() & 0x7f7f);
    image.valid = static_cast<uint8_t>(random());
    for (FxImage::Slot& st : image.st) st = extended();
    return image;
  }

  // Usually enough valid registers, and any control word. `unmasked`: with unmasked exceptions, and rarely
  // with one that is already pending.
  FxImage x87(bool unmasked) {
    FxImage image = masked_x87();
    if (below(2) != 0) image.valid = static_cast<uint8_t>(~(1u << (((image.status >> 11) + 7) & 7)));
    if (below(2) != 0) image.control = 0x37f;
    if (below(2) != 0) image.status &= static_cast<uint16_t>(~0x7f);
    if (unmasked) {
      image.control = static_cast<uint16_t>((image.control & ~0x3f) | (random() & 0x3f));
      if (below(8) != 0) image.status &= static_cast<uint16_t>(~0x3f | image.control);
      if ((image.status & ~image.control & 0x3f) != 0) image.status |= 0x8080;
    }
    return image;
  }

  FxImage::Slot extended() {
    static constexpr uint64_t kSignificands[] = {
        0x8000000000000000, 0x8000000000000001, 0xffffffffffffffff, 0xc000000000000000, 0xfffffffffffff800,
        0xfffffffffffffbff, 0xffffff8000000000, 0xffffff7fffffffff, 0xc90fdaa22168c235, 0xa000000000000000};
    static constexpr uint16_t kExponents[] = {0,      1,      0x3fff, 0x3ffe, 0x4000, 0x403e, 0x403d,
                                              0x401e, 0x400e, 0x3f80, 0x3f81, 0x3c00, 0x3c01, 0x407e,
                                              0x43fe, 0x7ffe, 0x3fbf, 0x403f, 0x5fff};
    const auto sign = static_cast<uint16_t>(below(2) << 15);
    switch (below(8)) {
      case 0:
        return {0, sign};
      case 1:
        return {uint64_t{1} << 63, static_cast<uint16_t>(sign | 0x7fff)};
      case 2:
        return {random() | uint64_t{1} << 63,
                static_cast<uint16_t>(sign | (below(4) == 0 ? 0x7fff : random() & 0x7fff))};
      case 3:
        return {random() >> below(64), static_cast<uint16_t>(below(3) == 0 ? random() : sign)};
      case 4:
        return {below(2) != 0 ? random() | uint64_t{1} << 63 : integer() | uint64_t{1} << 63,
                static_cast<uint16_t>(sign | (0x3fff - 70 + below(140)))};
      case 5:
        return {(integer() << 40) | uint64_t{1} << 63, static_cast<uint16_t>(sign | (0x3fff + below(64)))};
      default:
        return {kSignificands[below(std::size(kSignificands))],
                static_cast<uint16_t>(sign | kExponents[below(std::size(kExponents))])};
    }
  }

 private:
  Rng rng_;
};

}  // namespace slalom::vm
