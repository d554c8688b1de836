// Shifts and rotations. A count of zero changes no flags.
#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

enum class Shift : uint8_t { Rol, Ror, Rcl, Rcr, Shl, Shr, Sar };
enum class Count : uint8_t { Cl, Immediate };

template <class T>
constexpr unsigned kBits = 8 * sizeof(T);

template <class T>
constexpr bool top(T value) {
  return (value >> (kBits<T> - 1)) & 1;
}

// Rotations change CF and OF only.
inline void rotated(LazyFlags& flags, bool carry, bool overflow) {
  flags.aux = (flags.aux & ~uint64_t{0xc0000000}) | static_cast<uint64_t>(carry) << 31 |
              static_cast<uint64_t>(carry != overflow) << 30;
}

// OF is only defined for a count of one. For others it has the value that CPUs produce: as if the last step
// had a count of one.
template <Shift shift, class T>
inline T compute(LazyFlags& flags, T value, unsigned count) {
  constexpr unsigned bits = kBits<T>;
  if constexpr (shift == Shift::Shl) {
    const T result = count < bits ? static_cast<T>(value << count) : T{0};
    const bool carry = count <= bits && ((value >> (bits - count)) & 1);
    flags.set_result(result);
    flags.set_carry_overflow(carry, carry != top(result));
    return result;
  }
  if constexpr (shift == Shift::Shr) {
    const T result = count < bits ? static_cast<T>(value >> count) : T{0};
    const bool carry = count <= bits && ((value >> (count - 1)) & 1);
    flags.set_result(result);
    flags.set_carry_overflow(carry, count == 1 ? top(value) : top(static_cast<T>(result << 1)));
    return result;
  }
  if constexpr (shift == Shift::Sar) {
    using Signed = std::make_signed_t<T>;
    const unsigned limited = count < bits ? count : bits - 1;
    const T result = static_cast<T>(static_cast<Signed>(value) >> limited);
    const bool carry = count < bits ? (static_cast<Signed>(value) >> (count - 1)) & 1 : top(value);
    flags.set_result(result);
    flags.set_carry_overflow(carry, false);
    return result;
  }
  if constexpr (shift == Shift::Rol) {
    const unsigned turn = count % bits;
    const T result = turn == 0 ? value : static_cast<T>((value << turn) | (value >> (bits - turn)));
    rotated(flags, result & 1, (result & 1) != top(result));
    return result;
  }
  if constexpr (shift == Shift::Ror) {
    const unsigned turn = count % bits;
    const T result = turn == 0 ? value : static_cast<T>((value >> turn) | (value << (bits - turn)));
    rotated(flags, top(result), top(result) != top(static_cast<T>(result << 1)));
    return result;
  }
  // Through carry: bits + 1 positions.
  const unsigned turn = count % (bits + 1);
  using Wide = unsigned __int128;
  const Wide mask = (Wide{1} << (bits + 1)) - 1;
  Wide wide = (Wide{flags.carry()} << bits) | value;
  if (turn != 0) {
    if constexpr (shift == Shift::Rcl)
      wide = ((wide << turn) | (wide >> (bits + 1 - turn))) & mask;
    else
      wide = ((wide >> turn) | (wide << (bits + 1 - turn))) & mask;
  }
  const T result = static_cast<T>(wide);
  const bool carry = (wide >> bits) & 1;
  rotated(flags, carry,
          shift == Shift::Rcl ? carry != top(result) : top(result) != top(static_cast<T>(result << 1)));
  return result;
}

template <class T, Count from>
inline unsigned count_of(const Cpu& cpu, const Op* op) {
  const unsigned count =
      from == Count::Cl ? get<uint8_t>(cpu, kRcx * 8) : static_cast<uint8_t>(op->immediate);
  return count & (sizeof(T) == 8 ? 63 : 31);
}

template <class T, Shift shift, Count from>
const Op* shift_register(Cpu& cpu, const Op* op) {
  const unsigned count = count_of<T, from>(cpu, op);
  const T value = get<T>(cpu, op->dst);
  // A 32-bit shift by zero still clears the upper half.
  set<T>(cpu, op->dst, count == 0 ? value : compute<shift>(cpu.flags, value, count));
  NEXT;
}

template <class T, Shift shift, Count from>
const Op* shift_memory(Cpu& cpu, const Op* op) {
  uint64_t address;
  T value;
  if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
  if (!load_for_write(cpu, op, address, value)) return stop(cpu, op);
  const unsigned count = count_of<T, from>(cpu, op);
  const LazyFlags before = cpu.flags;
  const T result = count == 0 ? value : compute<shift>(cpu.flags, value, count);
  if (!store(cpu, op, address, result)) {
    cpu.flags = before;
    return stop(cpu, op);
  }
  NEXT;
}

// For 16 bits and counts above 16 the result is undefined. This is the result of Intel's and AMD's CPUs.
template <class T, bool left>
inline T compute_double(LazyFlags& flags, T value, T fill, unsigned count) {
  constexpr unsigned bits = kBits<T>;
  T result;
  bool carry;
  if constexpr (sizeof(T) == 2) {
    if constexpr (left) {
      const uint64_t wide = uint64_t{value} << 32 | uint64_t{fill} << 16 | value;
      result = static_cast<T>((wide << count) >> 32);
      carry = count <= 16 ? (value >> (16 - count)) & 1 : (fill >> (32 - count)) & 1;
    } else {
      const uint64_t wide = uint64_t{value} << 32 | uint64_t{fill} << 16 | value;
      result = static_cast<T>(wide >> count);
      carry = (wide >> (count - 1)) & 1;
    }
  } else if constexpr (left) {
    result = static_cast<T>((value << count) | (fill >> (bits - count)));
    carry = (value >> (bits - count)) & 1;
  } else {
    result = static_cast<T>((value >> count) | (fill << (bits - count)));
    carry = (value >> (count - 1)) & 1;
  }
  flags.set_result(result);
  flags.set_carry_overflow(carry,
                           left ? carry != top(result) : top(result) != top(static_cast<T>(result << 1)));
  return result;
}

template <class T, bool left, Count from, bool memory>
const Op* shift_double(Cpu& cpu, const Op* op) {
  const unsigned count = count_of<T, from>(cpu, op);
  const T fill = get<T>(cpu, op->src);
  if constexpr (memory) {
    uint64_t address;
    T value;
    if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
    if (!load_for_write(cpu, op, address, value)) return stop(cpu, op);
    const LazyFlags before = cpu.flags;
    const T result = count == 0 ? value : compute_double<T, left>(cpu.flags, value, fill, count);
    if (!store(cpu, op, address, result)) {
      cpu.flags = before;
      return stop(cpu, op);
    }
  } else {
    const T value = get<T>(cpu, op->dst);
    set<T>(cpu, op->dst, count == 0 ? value : compute_double<T, left>(cpu.flags, value, fill, count));
  }
  NEXT;
}

template <Shift shift>
Handler select_one(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  const bool immediate = in.is_immediate(1);
  if (immediate) op.immediate = in.immediate(1);
  return by_size(in.size(0), [&]<class T>(T) -> Handler {
    if (in.is_memory(0))
      return immediate ? shift_memory<T, shift, Count::Immediate> : shift_memory<T, shift, Count::Cl>;
    return immediate ? shift_register<T, shift, Count::Immediate> : shift_register<T, shift, Count::Cl>;
  });
}

template <bool left>
Handler select_double(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  op.src = in.register_number(1);
  const bool immediate = in.is_immediate(2);
  if (immediate) op.immediate = in.immediate(2);
  return by_wide_size(in.size(0), [&]<class T>(T) -> Handler {
    if (in.is_memory(0))
      return immediate ? shift_double<T, left, Count::Immediate, true>
                       : shift_double<T, left, Count::Cl, true>;
    return immediate ? shift_double<T, left, Count::Immediate, false>
                     : shift_double<T, left, Count::Cl, false>;
  });
}

}  // namespace

Handler select_shift(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_ROL:
      return select_one<Shift::Rol>(in, op);
    case ZYDIS_MNEMONIC_ROR:
      return select_one<Shift::Ror>(in, op);
    case ZYDIS_MNEMONIC_RCL:
      return select_one<Shift::Rcl>(in, op);
    case ZYDIS_MNEMONIC_RCR:
      return select_one<Shift::Rcr>(in, op);
    case ZYDIS_MNEMONIC_SHL:
      return select_one<Shift::Shl>(in, op);
    case ZYDIS_MNEMONIC_SHR:
      return select_one<Shift::Shr>(in, op);
    case ZYDIS_MNEMONIC_SAR:
      return select_one<Shift::Sar>(in, op);
    case ZYDIS_MNEMONIC_SHLD:
      return select_double<true>(in, op);
    case ZYDIS_MNEMONIC_SHRD:
      return select_double<false>(in, op);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
