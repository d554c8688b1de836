// x87 arithmetic: the four operations in all their forms, roots, rounding, scaling, and signs.
#include "vm/cpu/handlers/x87/x87_host.h"

namespace slalom::vm {
namespace {

// A real in memory is passed as its bits (uint32_t, uint64_t), an integer as a signed type.
#define X87_BINARY(Name, real, integer)                                                        \
  struct Name {                                                                                \
    static X87Answer run(const X87Register& a, const X87Register& b, uint16_t control) {       \
      X87Answer answer;                                                                        \
      X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t",                               \
                  real " %%st(1), %%st", [a] "m"(a), [b] "m"(b));                              \
      return answer;                                                                           \
    }                                                                                          \
    static X87Answer run(const X87Register& a, const uint32_t& b, uint16_t control) {          \
      X87Answer answer;                                                                        \
      X87_ON_HOST(answer, control, "fldt %[a]\n\t", real "s %[b]", [a] "m"(a), [b] "m"(b));    \
      return answer;                                                                           \
    }                                                                                          \
    static X87Answer run(const X87Register& a, const uint64_t& b, uint16_t control) {          \
      X87Answer answer;                                                                        \
      X87_ON_HOST(answer, control, "fldt %[a]\n\t", real "l %[b]", [a] "m"(a), [b] "m"(b));    \
      return answer;                                                                           \
    }                                                                                          \
    static X87Answer run(const X87Register& a, const int16_t& b, uint16_t control) {           \
      X87Answer answer;                                                                        \
      X87_ON_HOST(answer, control, "fldt %[a]\n\t", integer "s %[b]", [a] "m"(a), [b] "m"(b)); \
      return answer;                                                                           \
    }                                                                                          \
    static X87Answer run(const X87Register& a, const int32_t& b, uint16_t control) {           \
      X87Answer answer;                                                                        \
      X87_ON_HOST(answer, control, "fldt %[a]\n\t", integer "l %[b]", [a] "m"(a), [b] "m"(b)); \
      return answer;                                                                           \
    }                                                                                          \
  }
X87_BINARY(Add, "fadd", "fiadd");
X87_BINARY(Multiply, "fmul", "fimul");
X87_BINARY(Subtract, "fsub", "fisub");
X87_BINARY(SubtractReversed, "fsubr", "fisubr");
X87_BINARY(Divide, "fdiv", "fidiv");
X87_BINARY(DivideReversed, "fdivr", "fidivr");

#define X87_UNARY(Name, instruction)                                          \
  struct Name {                                                               \
    static X87Answer run(const X87Register& a, uint16_t control) {            \
      X87Answer answer;                                                       \
      X87_ON_HOST(answer, control, "fldt %[a]\n\t", instruction, [a] "m"(a)); \
      return answer;                                                          \
    }                                                                         \
  }
X87_UNARY(Root, "fsqrt");
X87_UNARY(Round, "frndint");

// Stack changes are in functions of their own. Results are returned through memory, and a handler that takes
// the address of a local variable could not end with a jump.

// Stores the answer in st(i). Returns false, without storing, if an operand caused an unmasked exception.
bool accept(Fpu& fpu, unsigned i, const X87Answer& answer) {
  if (!raise_x87(fpu, answer.status)) return false;
  set_st(fpu, i, answer.value);
  return true;
}

template <class F, class Memory>
[[gnu::noinline]] void combine_with_memory(Fpu& fpu, Memory b) {
  accept(fpu, 0, is_empty(fpu, 0) ? kStackUnderflow : F::run(st(fpu, 0), b, fpu.control));
}

template <class F>
[[gnu::noinline]] bool combine_with_register(Fpu& fpu, unsigned i, unsigned to) {
  const bool empty = is_empty(fpu, 0) || is_empty(fpu, i);
  return accept(fpu, to, empty ? kStackUnderflow : F::run(st(fpu, 0), st(fpu, i), fpu.control));
}

template <class F>
[[gnu::noinline]] void change_top(Fpu& fpu) {
  accept(fpu, 0, is_empty(fpu, 0) ? kStackUnderflow : F::run(st(fpu, 0), fpu.control));
}

template <class F, class Memory>
const Op* with_memory(Cpu& cpu, const Op* op) {
  Memory b;
  if (!x87_ready(cpu) || !load_operand(cpu, op, b)) return stop(cpu, op);
  combine_with_memory<F>(cpu.regs.fpu, b);
  return done_with_memory(cpu, op);
}

// op->src is i. `to_top`: the result goes to st(0) instead of st(i).
template <class F, bool to_top, bool pops>
const Op* with_register(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  if (combine_with_register<F>(cpu.regs.fpu, op->src, to_top ? 0 : op->src) && pops) pop(cpu.regs.fpu);
  return done(cpu, op);
}

template <class F>
const Op* unary(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  change_top<F>(cpu.regs.fpu);
  return done(cpu, op);
}

struct Scale {
  static X87Answer run(const X87Register& a, const X87Register& b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t", "fscale", [a] "m"(a), [b] "m"(b));
    return answer;
  }
};

const Op* scale(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  combine_with_register<Scale>(cpu.regs.fpu, 1, 0);
  return done(cpu, op);
}

// FXTRACT replaces st(0) with its exponent and pushes its significand.
[[gnu::noinline]] void split_top(Fpu& fpu) {
  X87Answer significand{x87::kIndefinite, 0};
  X87Register exponent = x87::kIndefinite;
  if (is_empty(fpu, 0))
    significand = kStackUnderflow;
  else if (!is_empty(fpu, 7))
    significand = kStackOverflow;
  else
    asm volatile(
        "fninit\n\tfldcw %[control]\n\tfldt %[a]\n\tfxtract\n\tfnstsw %[status]\n\tfnclex\n\t"
        "fstpt %[value]\n\tfstpt %[exponent]\n\tfninit"
        : [value] "=m"(significand.value), [status] "=m"(significand.status), [exponent] "=m"(exponent)
        : [control] "m"(fpu.control), [a] "m"(st(fpu, 0))
        : "st", "st(1)");
  if (!raise_x87(fpu, significand.status)) return;
  set_st(fpu, 0, exponent);
  push(fpu, significand.value);
}

const Op* extract(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  split_top(cpu.regs.fpu);
  return done(cpu, op);
}

// FABS and FCHS only change the sign bit, also for NaNs.
template <bool negate>
const Op* change_sign(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  Fpu& fpu = cpu.regs.fpu;
  if (is_empty(fpu, 0)) {
    if (raise_underflow_of_stack(fpu)) set_st(fpu, 0, x87::kIndefinite);
    return done(cpu, op);
  }
  change_codes(fpu, x87::kC1, 0);
  X87Register value = st(fpu, 0);
  value.sign_exponent =
      static_cast<uint16_t>(negate ? value.sign_exponent ^ 0x8000 : value.sign_exponent & 0x7fff);
  set_st(fpu, 0, value);
  return done(cpu, op);
}

// The eight operations of D8, DC, DE (and of DA with integers). 2 and 3 are comparisons.
template <class Pick>
Handler by_operation(unsigned reg, Pick pick) {
  switch (reg) {
    case 0:
      return pick(Add{});
    case 1:
      return pick(Multiply{});
    case 4:
      return pick(Subtract{});
    case 5:
      return pick(SubtractReversed{});
    case 6:
      return pick(Divide{});
    case 7:
      return pick(DivideReversed{});
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_x87_arithmetic(const X87Opcode& code, Op& op) {
  if (code.memory) {
    switch (code.number) {
      case 0:
        return by_operation(code.reg, [](auto f) -> Handler { return with_memory<decltype(f), uint32_t>; });
      case 2:
        return by_operation(code.reg, [](auto f) -> Handler { return with_memory<decltype(f), int32_t>; });
      case 4:
        return by_operation(code.reg, [](auto f) -> Handler { return with_memory<decltype(f), uint64_t>; });
      case 6:
        return by_operation(code.reg, [](auto f) -> Handler { return with_memory<decltype(f), int16_t>; });
      default:
        return nullptr;
    }
  }
  op.src = code.rm;
  // DC and DE encode the reversed forms the other way round: their left operand is also st(0).
  switch (code.number) {
    case 0:
      return by_operation(code.reg,
                          [](auto f) -> Handler { return with_register<decltype(f), true, false>; });
    case 4:
      return by_operation(code.reg,
                          [](auto f) -> Handler { return with_register<decltype(f), false, false>; });
    case 6:
      return by_operation(code.reg,
                          [](auto f) -> Handler { return with_register<decltype(f), false, true>; });
    case 1:
      break;
    default:
      return nullptr;
  }
  switch (code.reg << 3 | code.rm) {
    case 040:
      return change_sign<true>;
    case 041:
      return change_sign<false>;
    case 064:
      return extract;
    case 072:
      return unary<Root>;
    case 074:
      return unary<Round>;
    case 075:
      return scale;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
