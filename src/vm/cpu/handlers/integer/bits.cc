// Bit tests and scans. If the bit number is in a register, memory forms can access bytes outside of their
// operand.
#include <bit>

#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

enum class Bit : uint8_t { Test, Set, Reset, Complement };

template <Bit bit, class T>
inline T change(T value, unsigned number) {
  const T mask = static_cast<T>(T{1} << number);
  if constexpr (bit == Bit::Set) return value | mask;
  if constexpr (bit == Bit::Reset) return value & static_cast<T>(~mask);
  if constexpr (bit == Bit::Complement) return value ^ mask;
  return value;
}

template <class T, Bit bit, bool immediate>
const Op* on_register(Cpu& cpu, const Op* op) {
  constexpr unsigned mask = 8 * sizeof(T) - 1;
  const unsigned number =
      (immediate ? static_cast<unsigned>(op->immediate) : get<uint8_t>(cpu, op->src * 8)) & mask;
  const T value = get<T>(cpu, op->dst);
  cpu.flags.change_carry((value >> number) & 1);
  if constexpr (bit != Bit::Test) set<T>(cpu, op->dst, change<bit>(value, number));
  NEXT;
}

template <class T, Bit bit, bool immediate>
const Op* on_memory(Cpu& cpu, const Op* op) {
  constexpr unsigned mask = 8 * sizeof(T) - 1;
  constexpr AccessKind kind = bit == Bit::Test ? AccessKind::Read : AccessKind::Write;
  uint64_t address, offset = offset_of(cpu, op);
  unsigned number;
  if constexpr (immediate) {
    number = static_cast<unsigned>(op->immediate) & mask;
  } else {
    const auto index = static_cast<std::make_signed_t<T>>(get<T>(cpu, op->src));
    number = static_cast<unsigned>(index) & mask;
    offset +=
        static_cast<uint64_t>(static_cast<int64_t>(index) >> std::countr_zero(8 * sizeof(T))) * sizeof(T);
  }
  if (op->segment < kLegacySegments)
    address = offset + cpu.segment_base[op->segment];
  else if (legacy_address(cpu, op, sizeof(T), kind, offset))
    address = cpu.linear;
  else
    return stop(cpu, op);
  T value;
  if constexpr (bit == Bit::Test) {
    if (!load(cpu, op, address, value)) return stop(cpu, op);
  } else {
    if (!load_for_write(cpu, op, address, value)) return stop(cpu, op);
    if (!store(cpu, op, address, change<bit>(value, number))) return stop(cpu, op);
  }
  cpu.flags.change_carry((value >> number) & 1);
  NEXT;
}

// ZF is set for a zero source; then the destination does not change. The other flags are undefined and do not
// change here.
template <class T, Source source, bool forward>
const Op* scan(Cpu& cpu, const Op* op) {
  T value;
  if (!load_source<T, source>(cpu, op, value)) return stop(cpu, op);
  uint64_t flags = cpu.flags.arithmetic() & ~flag::kZeroFlag;
  if (value == 0) {
    flags |= flag::kZeroFlag;
    // Both vendors leave the whole register unchanged, including the upper half of a 32-bit one.
  } else {
    set<T>(cpu, op->dst,
           static_cast<T>(forward ? std::countr_zero(value) : 8 * sizeof(T) - 1 - std::countl_zero(value)));
  }
  cpu.flags.set_arithmetic(flags);
  NEXT;
}

template <Bit bit>
Handler select_bit(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  op.src = in.register_number(1);
  const bool immediate = in.is_immediate(1);
  if (immediate) op.immediate = in.immediate(1);
  return by_wide_size(in.size(0), [&]<class T>(T) -> Handler {
    if (in.is_memory(0)) return immediate ? on_memory<T, bit, true> : on_memory<T, bit, false>;
    return immediate ? on_register<T, bit, true> : on_register<T, bit, false>;
  });
}

template <bool forward>
Handler select_scan(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  op.src = in.register_number(1);
  return by_wide_size(in.size(0), [&]<class T>(T) -> Handler {
    return in.is_memory(1) ? scan<T, Source::Memory, forward> : scan<T, Source::Register, forward>;
  });
}

}  // namespace

Handler select_bits(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_BT:
      return select_bit<Bit::Test>(in, op);
    case ZYDIS_MNEMONIC_BTS:
      return select_bit<Bit::Set>(in, op);
    case ZYDIS_MNEMONIC_BTR:
      return select_bit<Bit::Reset>(in, op);
    case ZYDIS_MNEMONIC_BTC:
      return select_bit<Bit::Complement>(in, op);
    // CPUID does not offer BMI1 and LZCNT, so the prefix has no meaning.
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_TZCNT:
      return select_scan<true>(in, op);
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_LZCNT:
      return select_scan<false>(in, op);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
