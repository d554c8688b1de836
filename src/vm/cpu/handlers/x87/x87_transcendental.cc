// The transcendental instructions: their stack effects and special cases. x87_functions.h computes the
// values.
#include "vm/cpu/handlers/x87/x87_functions.h"

namespace slalom::vm {
namespace {

constexpr X87Register kOne{uint64_t{1} << 63, 0x3fff};
constexpr X87Answer kInvalidAnswer{x87::kIndefinite, x87::kInvalid};

X87Register infinity(bool negative) {
  return {uint64_t{1} << 63, static_cast<uint16_t>(negative ? 0xffff : 0x7fff)};
}
X87Register zero(bool negative) {
  return {0, static_cast<uint16_t>(negative ? 0x8000 : 0)};
}

bool is_special(const X87Register& r) {
  return x87::is_nan(r) || x87::is_unsupported(r);
}

// Which NaN results from two operands is the same for every operation.
X87Answer propagate(X87Register a, X87Register b, uint16_t control) {
  X87Answer answer;
  X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t", "fadd %%st(1), %%st", [a] "m"(a), [b] "m"(b));
  return answer;
}

// An operation that is invalid or divides by zero does not also report a denormal operand.
X87Answer with_denormals(X87Answer answer, bool denormal) {
  if (denormal && (answer.status & (x87::kInvalid | x87::kDivide)) == 0) answer.status |= x87::kDenormal;
  return answer;
}

// Results without a special case count as inexact, even if they happen to fit into 64 bits. So a denormal
// result is always an underflow.
X87Answer rounded(const WideFloat& result, uint16_t control) {
  X87Answer answer = result.round(control);
  answer.status |= x87::kPrecision;
  if (x87::exponent(answer.value) == 0) answer.status |= x87::kUnderflow;
  return answer;
}

// --- two operands: st(1) = f(st(1), st(0)), then pop ---

struct ArcTangent {
  static X87Answer run(const X87Register& y, const X87Register& x, uint16_t control) {
    const bool left = x87::is_negative(x);
    // On an axis or at infinity the result is a multiple of one eighth of a turn.
    int eighths = -1;
    if (x87::is_infinite(y))
      eighths = x87::is_infinite(x) ? (left ? 3 : 1) : 2;
    else if (x87::is_infinite(x) || x87::is_zero(y))
      eighths = left ? 4 : 0;
    else if (x87::is_zero(x))
      eighths = 2;
    if (eighths < 0) return rounded(arctangent(WideFloat::of(y), WideFloat::of(x)), control);
    if (eighths == 0) return {zero(x87::is_negative(y)), 0};
    WideFloat angle = pi().times_power_of_two(-2) * WideFloat::of(eighths);
    angle.negative = x87::is_negative(y);
    return rounded(angle, control);
  }
};

// Computes y * log for a logarithm that is zero, infinite or neither: the common part of both instructions.
X87Answer times_logarithm(const X87Register& y, const WideFloat& log, uint16_t control) {
  const bool negative = x87::is_negative(y) != log.negative;
  if (x87::is_infinite(y)) return log.is_zero() ? kInvalidAnswer : X87Answer{infinity(negative), 0};
  if (x87::is_zero(y) || log.is_zero()) return {zero(negative), 0};
  return rounded(WideFloat::of(y) * log, control);
}

struct Logarithm {
  static X87Answer run(const X87Register& y, const X87Register& x, uint16_t control) {
    if (x87::is_zero(x)) {
      if (x87::is_zero(y)) return kInvalidAnswer;
      const X87Register result = infinity(!x87::is_negative(y));
      return {result, x87::is_infinite(y) ? uint16_t{0} : x87::kDivide};
    }
    if (x87::is_negative(x)) return kInvalidAnswer;
    if (x87::is_infinite(x)) {
      if (x87::is_zero(y)) return kInvalidAnswer;
      return {infinity(x87::is_negative(y)), 0};
    }
    return times_logarithm(y, logarithm(WideFloat::of(x)), control);
  }
};

struct LogarithmPlusOne {
  static X87Answer run(const X87Register& y, const X87Register& x, uint16_t control) {
    if (x87::is_infinite(x)) {
      if (x87::is_negative(x) || x87::is_zero(y)) return kInvalidAnswer;
      return {infinity(x87::is_negative(y)), 0};
    }
    const WideFloat wide = WideFloat::of(x);
    // The logarithm exists for x > -1; otherwise the result is undefined.
    const bool has_logarithm = !wide.negative || wide.exponent < 0;
    if (wide.is_zero() || !has_logarithm) {
      // The operand itself stands in for its logarithm.
      if (wide.is_zero() || x87::is_zero(y) || x87::is_infinite(y)) return times_logarithm(y, wide, control);
      return {x, x87::kPrecision};
    }
    return times_logarithm(y, logarithm_plus_one(wide), control);
  }
};

template <class F>
[[gnu::noinline]] void combine(Fpu& fpu) {
  const X87Register y = st(fpu, 1), x = st(fpu, 0);
  X87Answer answer = kStackUnderflow;
  if (!is_empty(fpu, 0) && !is_empty(fpu, 1))
    answer = is_special(x) || is_special(y)
                 ? propagate(x, y, fpu.control)
                 : with_denormals(F::run(y, x, fpu.control), x87::is_denormal(x) || x87::is_denormal(y));
  if (!raise_x87(fpu, answer.status)) return;
  set_st(fpu, 1, answer.value);
  pop(fpu);
}

template <class F>
const Op* binary(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  combine<F>(cpu.regs.fpu);
  return done(cpu, op);
}

// --- one operand ---

struct PowerMinusOne {
  static X87Answer run(const X87Register& x, uint16_t control) {
    // Undefined for |x| > 1. Here, infinity gives the limit and other operands are returned unchanged.
    if (x87::is_infinite(x)) return {x87::is_negative(x) ? X87Register{kOne.significand, 0xbfff} : x, 0};
    const WideFloat wide = WideFloat::of(x);
    if (wide.is_zero()) return {x, 0};
    if (wide.exponent >= 0) {
      const bool is_one = wide.exponent == 0 && x.significand == kOne.significand;
      const X87Register minus_half{kOne.significand, 0xbffe};
      return {is_one && wide.negative ? minus_half : x, x87::kPrecision};
    }
    return rounded(power_of_two_minus_one(wide), control);
  }
};

[[gnu::noinline]] void raise_top_to_power(Fpu& fpu) {
  const X87Register x = st(fpu, 0);
  X87Answer answer = kStackUnderflow;
  if (!is_empty(fpu, 0))
    answer = is_special(x) ? propagate(x, x, fpu.control)
                           : with_denormals(PowerMinusOne::run(x, fpu.control), x87::is_denormal(x));
  if (raise_x87(fpu, answer.status)) set_st(fpu, 0, answer.value);
}

const Op* power_minus_one(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  raise_top_to_power(cpu.regs.fpu);
  return done(cpu, op);
}

// FSIN, FCOS, FPTAN and FSINCOS. The last two push a second result.
enum class Circular : uint8_t { Sine, Cosine, Tangent, Both };

struct CircularAnswer {
  X87Answer first;
  X87Register second;
};

template <Circular function>
CircularAnswer circular(const X87Register& x, uint16_t control) {
  const bool denormal = x87::is_denormal(x);
  if (is_special(x)) {
    const X87Answer answer = propagate(x, x, control);
    return {answer, answer.value};
  }
  if (x87::is_infinite(x)) return {kInvalidAnswer, x87::kIndefinite};
  if (x87::is_zero(x)) return {{function == Circular::Cosine ? kOne : x, 0}, kOne};
  if constexpr (function == Circular::Tangent)
    return {with_denormals(rounded(tangent(x), control), denormal), kOne};
  const SineCosine values = sine_cosine(x);
  if constexpr (function == Circular::Sine)
    return {with_denormals(rounded(values.sine, control), denormal), {}};
  if constexpr (function == Circular::Cosine)
    return {with_denormals(rounded(values.cosine, control), denormal), {}};
  const X87Answer cosine = rounded(values.cosine, control);
  X87Answer sine = with_denormals(rounded(values.sine, control), denormal);
  sine.status |= cosine.status;
  return {sine, cosine.value};
}

template <Circular function>
[[gnu::noinline]] void turn_top(Fpu& fpu) {
  constexpr bool pushes = function == Circular::Tangent || function == Circular::Both;
  const X87Register x = st(fpu, 0);
  CircularAnswer answer{kStackUnderflow, x87::kIndefinite};
  if (!is_empty(fpu, 0)) {
    const bool too_large =
        x87::exponent(x) >= 0x3fff + 63 && x87::exponent(x) < 0x7fff && !x87::is_unsupported(x);
    if (pushes && !is_empty(fpu, 7)) {
      answer.first = kStackOverflow;
    } else if (too_large) {
      change_codes(fpu, x87::kC1 | x87::kC2, x87::kC2);
      return;
    } else {
      answer = circular<function>(x, fpu.control);
    }
  }
  change_codes(fpu, x87::kC2, 0);
  if (!raise_x87(fpu, answer.first.status)) return;
  set_st(fpu, 0, answer.first.value);
  if (pushes) push(fpu, answer.second);
}

template <Circular function>
const Op* circular_handler(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  turn_top<function>(cpu.regs.fpu);
  return done(cpu, op);
}

}  // namespace

Handler select_x87_transcendental(const X87Opcode& code, Op&) {
  if (code.memory || code.number != 1) return nullptr;
  switch (code.reg << 3 | code.rm) {
    case 060:
      return power_minus_one;
    case 061:
      return binary<Logarithm>;
    case 062:
      return circular_handler<Circular::Tangent>;
    case 063:
      return binary<ArcTangent>;
    case 071:
      return binary<LogarithmPlusOne>;
    case 073:
      return circular_handler<Circular::Both>;
    case 076:
      return circular_handler<Circular::Sine>;
    case 077:
      return circular_handler<Circular::Cosine>;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
