// x87 comparisons that set the condition codes or the CPU's flags, and FXAM.
#include "vm/cpu/handlers/x87/x87_host.h"

namespace slalom::vm {
namespace {

constexpr uint16_t kUnordered = x87::kC0 | x87::kC2 | x87::kC3;

// FUCOM and similar accept quiet NaNs.
struct Ordered {
  static X87Answer run(const X87Register& a, const X87Register& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t", "fcom %%st(1)", [a] "m"(a), [b] "m"(b));
    return answer;
  }
  static X87Answer run(const X87Register& a, const uint32_t& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[a]\n\t", "fcoms %[b]", [a] "m"(a), [b] "m"(b));
    return answer;
  }
  static X87Answer run(const X87Register& a, const uint64_t& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[a]\n\t", "fcoml %[b]", [a] "m"(a), [b] "m"(b));
    return answer;
  }
  static X87Answer run(const X87Register& a, const int16_t& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[a]\n\t", "ficoms %[b]", [a] "m"(a), [b] "m"(b));
    return answer;
  }
  static X87Answer run(const X87Register& a, const int32_t& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[a]\n\t", "ficoml %[b]", [a] "m"(a), [b] "m"(b));
    return answer;
  }
};

struct Unordered {
  static X87Answer run(const X87Register& a, const X87Register& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t", "fucom %%st(1)", [a] "m"(a), [b] "m"(b));
    return answer;
  }
};

// Both return a status whose codes contain the result of the comparison.
template <class Memory>
[[gnu::noinline]] uint16_t compare_with_memory(const Fpu& fpu, Memory b) {
  if (is_empty(fpu, 0)) return kStackUnderflow.status | kUnordered;
  return Ordered::run(st(fpu, 0), b, fpu.control).status;
}
template <class F>
[[gnu::noinline]] uint16_t compare_with_register(const Fpu& fpu, unsigned i) {
  if (is_empty(fpu, 0) || is_empty(fpu, i)) return kStackUnderflow.status | kUnordered;
  return F::run(st(fpu, 0), st(fpu, i), fpu.control).status;
}

// Returns false for an unmasked exception. The codes are set even then, but nothing is popped.
bool accept_codes(Fpu& fpu, uint16_t status) {
  change_codes(fpu, kUnordered, status);
  return raise_x87(fpu, status & ~x87::kC1);
}

template <class Memory, bool pops>
const Op* with_memory(Cpu& cpu, const Op* op) {
  Memory b;
  if (!x87_ready(cpu) || !load_operand(cpu, op, b)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  if (accept_codes(fpu, compare_with_memory(fpu, b)) && pops) pop(fpu);
  return done_with_memory(cpu, op);
}

template <class F, unsigned pops>
const Op* with_register(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  if (accept_codes(fpu, compare_with_register<F>(fpu, op->src)))
    for (unsigned i = 0; i < pops; ++i) pop(fpu);
  return done(cpu, op);
}

template <class F, bool pops>
const Op* into_flags(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  const uint16_t status = compare_with_register<F>(fpu, op->src);
  cpu.flags.set_arithmetic(((status & x87::kC3) != 0 ? flag::kZeroFlag : 0) |
                           ((status & x87::kC2) != 0 ? flag::kParity : 0) |
                           ((status & x87::kC0) != 0 ? flag::kCarry : 0));
  // C1 only changes for a stack fault.
  const uint16_t c1 = (status & x87::kStackFault) != 0 ? 0 : fpu.status & x87::kC1;
  if (raise_x87(fpu, static_cast<uint16_t>((status & ~x87::kC1) | c1)) && pops) pop(fpu);
  return done(cpu, op);
}

const Op* with_zero(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  accept_codes(cpu.regs.fpu, compare_with_memory(cpu.regs.fpu, x87::kZero));
  return done(cpu, op);
}

const Op* examine(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  const X87Register& value = st(fpu, 0);
  uint16_t codes = x87::kC2;  // a normal number
  if (is_empty(fpu, 0))
    codes = x87::kC3 | x87::kC0;
  else if (x87::is_unsupported(value))
    codes = 0;
  else if (x87::is_nan(value))
    codes = x87::kC0;
  else if (x87::is_infinite(value))
    codes = x87::kC2 | x87::kC0;
  else if (x87::is_zero(value))
    codes = x87::kC3;
  else if (x87::is_denormal(value))
    codes = x87::kC3 | x87::kC2;
  change_codes(fpu, x87::kCodes, codes | (x87::is_negative(value) ? x87::kC1 : 0));
  return done(cpu, op);
}

template <class Memory>
Handler pick_memory(bool pops) {
  return pops ? with_memory<Memory, true> : with_memory<Memory, false>;
}

Handler select_register_form(const X87Opcode& code) {
  const unsigned place = code.reg << 3 | code.rm;
  switch (code.number) {
    case 0:
    case 4:  // DC D0 and DC D8 are alternative encodings
      if (code.reg == 2) return with_register<Ordered, 0>;
      return code.reg == 3 ? with_register<Ordered, 1> : nullptr;
    case 1:
      if (place == 044) return with_zero;
      return place == 045 ? examine : nullptr;
    case 2:
      return place == 051 ? with_register<Unordered, 2> : nullptr;
    case 3:
      if (code.reg == 5) return into_flags<Unordered, false>;
      return code.reg == 6 ? into_flags<Ordered, false> : nullptr;
    case 5:
      if (code.reg == 4) return with_register<Unordered, 0>;
      return code.reg == 5 ? with_register<Unordered, 1> : nullptr;
    case 6:
      if (code.reg == 2) return with_register<Ordered, 1>;  // DE D0, too
      return place == 031 ? with_register<Ordered, 2> : nullptr;
    case 7:
      if (code.reg == 5) return into_flags<Unordered, true>;
      return code.reg == 6 ? into_flags<Ordered, true> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_x87_compare(const X87Opcode& code, Op& op) {
  op.src = code.rm;
  if (!code.memory) return select_register_form(code);
  if (code.reg != 2 && code.reg != 3) return nullptr;
  const bool pops = code.reg == 3;
  switch (code.number) {
    case 0:
      return pick_memory<uint32_t>(pops);
    case 2:
      return pick_memory<int32_t>(pops);
    case 4:
      return pick_memory<uint64_t>(pops);
    case 6:
      return pick_memory<int16_t>(pops);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
