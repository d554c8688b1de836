// FPREM and FPREM1: the remainder, up to 63 bits of quotient at a time.
//
// If the exponents differ by less than 64, the result is exact and the host computes it. Otherwise one
// instruction reduces the exponent by a number of bits that CPUs may choose. Here it is 32 + difference % 32,
// as on Intel's CPUs.
#include "vm/cpu/handlers/x87/x87_host.h"

namespace slalom::vm {
namespace {

struct Truncated {
  static X87Answer run(X87Register a, X87Register b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t", "fprem", [a] "m"(a), [b] "m"(b));
    return answer;
  }
};
struct Nearest {
  static X87Answer run(X87Register a, X87Register b, uint16_t control) {
    X87Answer answer;
    X87_ON_HOST(answer, control, "fldt %[b]\n\tfldt %[a]\n\t", "fprem1", [a] "m"(a), [b] "m"(b));
    return answer;
  }
};

bool is_number(const X87Register& r) {
  return r.significand != 0 && x87::exponent(r) != 0x7fff && !x87::is_unsupported(r);
}
unsigned leading_zeros(const X87Register& r) {
  return static_cast<unsigned>(__builtin_clzll(r.significand));
}
int true_exponent(const X87Register& r) {
  return (x87::exponent(r) == 0 ? 1 : static_cast<int>(x87::exponent(r))) -
         static_cast<int>(leading_zeros(r));
}
X87Register with_exponent(const X87Register& r, int exponent) {
  const auto sign = static_cast<uint16_t>(r.sign_exponent & 0x8000);
  const uint64_t normalized = r.significand << leading_zeros(r);
  if (exponent > 0) return {normalized, static_cast<uint16_t>(sign | exponent)};
  return {normalized >> (1 - exponent), sign};  // exact: normalising has appended that many zeros
}

template <class F>
X87Answer remainder(const X87Register& a, const X87Register& b, uint16_t control) {
  const int difference = is_number(a) && is_number(b) ? true_exponent(a) - true_exponent(b) : 0;
  if (difference < 64) return F::run(a, b, control);
  const uint16_t denormal = x87::is_denormal(b) ? x87::kDenormal : 0;
  if ((denormal & ~control) != 0) return {a, denormal};
  const int bits = 32 + difference % 32;
  X87Answer answer = Truncated::run(a, with_exponent(b, true_exponent(a) - bits), control);
  answer.status = static_cast<uint16_t>((answer.status & ~x87::kCodes) | x87::kC2 | denormal);
  return answer;
}

template <class F>
[[gnu::noinline]] void reduce_top(Fpu& fpu) {
  change_codes(fpu, x87::kC1 | x87::kC2, 0);
  if (is_empty(fpu, 0) || is_empty(fpu, 1)) {
    if (raise_underflow_of_stack(fpu)) set_st(fpu, 0, x87::kIndefinite);
    return;
  }
  const X87Register a = st(fpu, 0), b = st(fpu, 1);
  const X87Answer answer = remainder<F>(a, b, fpu.control);
  // The lowest bits of the quotient, if there is one.
  const bool has_quotient = !x87::is_nan(a) && !x87::is_nan(b) && (answer.status & x87::kInvalid) == 0 &&
                            (answer.status & ~fpu.control & x87::kOfOperands) == 0;
  if (has_quotient) change_codes(fpu, x87::kCodes, answer.status);
  if (raise_x87(fpu, answer.status)) set_st(fpu, 0, answer.value);
}

template <class F>
const Op* handler(Cpu& cpu, const Op* op) {
  if (!x87_ready(cpu)) return stop(cpu, op);
  reduce_top<F>(cpu.regs.fpu);
  return done(cpu, op);
}

}  // namespace

Handler select_x87_remainder(const X87Opcode& code, Op&) {
  if (code.memory || code.number != 1) return nullptr;
  switch (code.reg << 3 | code.rm) {
    case 065:
      return handler<Nearest>;
    case 070:
      return handler<Truncated>;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
