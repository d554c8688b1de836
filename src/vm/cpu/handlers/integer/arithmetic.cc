// Addition, subtraction, logic and comparison, including the read-modify-write forms that locks use.
//
// LOCK needs no code, because one CPU runs at a time and switches only happen between instructions.
#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

enum class Alu : uint8_t { Add, Or, Adc, Sbb, And, Sub, Xor, Cmp, Test };

template <Alu alu, class T>
inline T compute(Cpu& cpu, T a, T b) {
  LazyFlags& flags = cpu.flags;
  if constexpr (alu == Alu::Add) return flags.add(a, b);
  if constexpr (alu == Alu::Adc) return flags.add(a, b, flags.carry());
  if constexpr (alu == Alu::Sub || alu == Alu::Cmp) return flags.subtract(a, b);
  if constexpr (alu == Alu::Sbb) return flags.subtract(a, b, flags.carry());
  T result;
  if constexpr (alu == Alu::Or) result = a | b;
  if constexpr (alu == Alu::And || alu == Alu::Test) result = a & b;
  if constexpr (alu == Alu::Xor) result = a ^ b;
  flags.set_logical(result);
  return result;
}

constexpr bool writes(Alu alu) {
  return alu != Alu::Cmp && alu != Alu::Test;
}

template <class T, Source source, Alu alu>
const Op* to_register(Cpu& cpu, const Op* op) {
  T b;
  if (!load_source<T, source>(cpu, op, b)) return stop(cpu, op);
  const T result = compute<alu>(cpu, get<T>(cpu, op->dst), b);
  if constexpr (writes(alu)) set<T>(cpu, op->dst, result);
  NEXT;
}

template <class T, Source source, Alu alu>
const Op* to_memory(Cpu& cpu, const Op* op) {
  const T b = source == Source::Immediate ? static_cast<T>(op->immediate) : get<T>(cpu, op->src);
  T a;
  if constexpr (writes(alu)) {
    uint64_t address;
    if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
    if (!load_for_write(cpu, op, address, a)) return stop(cpu, op);
    const LazyFlags before = cpu.flags;
    if (!store(cpu, op, address, compute<alu>(cpu, a, b))) {
      cpu.flags = before;
      return stop(cpu, op);
    }
  } else {
    if (!load_operand(cpu, op, a)) return stop(cpu, op);
    compute<alu>(cpu, a, b);
  }
  NEXT;
}

enum class Unary : uint8_t { Inc, Dec, Neg, Not };

template <Unary unary, class T>
inline T compute(Cpu& cpu, T a) {
  LazyFlags& flags = cpu.flags;
  if constexpr (unary == Unary::Not) return static_cast<T>(~a);
  if constexpr (unary == Unary::Neg) return flags.subtract(T{0}, a);
  const bool carry = flags.carry();
  const T result = unary == Unary::Inc ? flags.add(a, T{1}) : flags.subtract(a, T{1});
  flags.change_carry(carry);
  return result;
}

template <class T, Unary unary>
const Op* unary_register(Cpu& cpu, const Op* op) {
  set<T>(cpu, op->dst, compute<unary>(cpu, get<T>(cpu, op->dst)));
  NEXT;
}

template <class T, Unary unary>
const Op* unary_memory(Cpu& cpu, const Op* op) {
  uint64_t address;
  T a;
  if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
  if (!load_for_write(cpu, op, address, a)) return stop(cpu, op);
  const LazyFlags before = cpu.flags;
  if (!store(cpu, op, address, compute<unary>(cpu, a))) {
    cpu.flags = before;
    return stop(cpu, op);
  }
  NEXT;
}

template <class T, bool memory>
const Op* xadd(Cpu& cpu, const Op* op) {
  const T b = get<T>(cpu, op->src);
  T a;
  if constexpr (memory) {
    uint64_t address;
    if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
    if (!load_for_write(cpu, op, address, a)) return stop(cpu, op);
    if (!store(cpu, op, address, static_cast<T>(a + b))) return stop(cpu, op);
    cpu.flags.add(a, b);
    set<T>(cpu, op->src, a);
  } else {
    a = get<T>(cpu, op->dst);
    const T sum = cpu.flags.add(a, b);
    set<T>(cpu, op->src, a);
    set<T>(cpu, op->dst, sum);
  }
  NEXT;
}

template <class T, bool memory>
const Op* cmpxchg(Cpu& cpu, const Op* op) {
  const T accumulator = get<T>(cpu, kRax);
  const T desired = get<T>(cpu, op->src);
  if constexpr (memory) {
    uint64_t address;
    T found;
    if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
    if (!load_for_write(cpu, op, address, found)) return stop(cpu, op);
    // A failed CMPXCHG writes the old value back on real CPUs, which no one can observe.
    if (found == accumulator && !store(cpu, op, address, desired)) return stop(cpu, op);
    cpu.flags.subtract(accumulator, found);
    if (found != accumulator) {
      set<T>(cpu, kRax, found);
      if (cpu.fails_again(address)) return end_turn(cpu, op);
    }
  } else {
    const T found = get<T>(cpu, op->dst);
    cpu.flags.subtract(accumulator, found);
    if (found == accumulator)
      set<T>(cpu, op->dst, desired);
    else
      set<T>(cpu, kRax, found);
  }
  NEXT;
}

const Op* cmpxchg8b(Cpu& cpu, const Op* op) {
  uint64_t address, found;
  if (!address_of<AccessKind::Write>(cpu, op, 8, address)) return stop(cpu, op);
  if (!load_for_write(cpu, op, address, found)) return stop(cpu, op);
  const uint64_t expected = uint64_t{get<uint32_t>(cpu, kRdx)} << 32 | get<uint32_t>(cpu, kRax);
  const uint64_t desired = uint64_t{get<uint32_t>(cpu, kRcx)} << 32 | get<uint32_t>(cpu, kRbx);
  if (found == expected && !store(cpu, op, address, desired)) return stop(cpu, op);
  if (found != expected) {
    set<uint32_t>(cpu, kRax, static_cast<uint32_t>(found));
    set<uint32_t>(cpu, kRdx, static_cast<uint32_t>(found >> 32));
  }
  uint64_t flags = cpu.flags.arithmetic() & ~flag::kZeroFlag;
  if (found == expected) flags |= flag::kZeroFlag;
  cpu.flags.set_arithmetic(flags);
  if (found != expected && cpu.fails_again(address)) return end_turn(cpu, op);
  NEXT;
}

template <Alu alu>
Handler select_alu(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  op.src = in.register_number(1);
  if (in.is_immediate(1)) op.immediate = in.immediate(1);
  return by_size(in.size(0), [&]<class T>(T) -> Handler {
    if (in.is_memory(0))
      return in.is_immediate(1) ? to_memory<T, Source::Immediate, alu> : to_memory<T, Source::Register, alu>;
    if (in.is_memory(1)) return to_register<T, Source::Memory, alu>;
    return in.is_immediate(1) ? to_register<T, Source::Immediate, alu>
                              : to_register<T, Source::Register, alu>;
  });
}

template <Unary unary>
Handler select_unary(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  return by_size(in.size(0), [&]<class T>(T) -> Handler {
    return in.is_memory(0) ? unary_memory<T, unary> : unary_register<T, unary>;
  });
}

}  // namespace

Handler select_arithmetic(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_ADD:
      return select_alu<Alu::Add>(in, op);
    case ZYDIS_MNEMONIC_OR:
      return select_alu<Alu::Or>(in, op);
    case ZYDIS_MNEMONIC_ADC:
      return select_alu<Alu::Adc>(in, op);
    case ZYDIS_MNEMONIC_SBB:
      return select_alu<Alu::Sbb>(in, op);
    case ZYDIS_MNEMONIC_AND:
      return select_alu<Alu::And>(in, op);
    case ZYDIS_MNEMONIC_SUB:
      return select_alu<Alu::Sub>(in, op);
    case ZYDIS_MNEMONIC_XOR:
      return select_alu<Alu::Xor>(in, op);
    case ZYDIS_MNEMONIC_CMP:
      return select_alu<Alu::Cmp>(in, op);
    case ZYDIS_MNEMONIC_TEST:
      return select_alu<Alu::Test>(in, op);
    case ZYDIS_MNEMONIC_INC:
      return select_unary<Unary::Inc>(in, op);
    case ZYDIS_MNEMONIC_DEC:
      return select_unary<Unary::Dec>(in, op);
    case ZYDIS_MNEMONIC_NEG:
      return select_unary<Unary::Neg>(in, op);
    case ZYDIS_MNEMONIC_NOT:
      return select_unary<Unary::Not>(in, op);
    case ZYDIS_MNEMONIC_XADD:
    case ZYDIS_MNEMONIC_CMPXCHG: {
      op.dst = in.register_number(0);
      op.src = in.register_number(1);
      const bool add = in.mnemonic() == ZYDIS_MNEMONIC_XADD;
      return by_size(in.size(0), [&]<class T>(T) -> Handler {
        if (add) return in.is_memory(0) ? xadd<T, true> : xadd<T, false>;
        return in.is_memory(0) ? cmpxchg<T, true> : cmpxchg<T, false>;
      });
    }
    case ZYDIS_MNEMONIC_CMPXCHG8B:
      return cmpxchg8b;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
