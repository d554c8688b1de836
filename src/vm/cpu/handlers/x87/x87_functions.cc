// Series for x87 functions. Arguments are reduced first, so that a few dozen terms give 120 bits.
#include "vm/cpu/handlers/x87/x87_functions.h"

namespace slalom::vm {
namespace {

WideFloat one() {
  return WideFloat::of(1);
}
WideFloat natural_logarithm_of_two() {
  return WideFloat::constant(-1, 0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af);
}

WideFloat magnitude(const WideFloat& x) {
  return {false, x.exponent, x.significand};
}

// Returns true if the series may end with this term: it changes only the last bits of the sum. A following
// term of the other sign could hide that the result is inexact.
bool is_negligible(const WideFloat& term, const WideFloat& sum) {
  return term.is_zero() || term.exponent < sum.exponent - 125;
}

// sum of sign^k * x^(2k+1) / (2k+1): the inverse tangent (-1) or hyperbolic tangent (+1) of a small x.
WideFloat inverse_tangent_series(const WideFloat& x, bool alternating) {
  const WideFloat square = alternating ? -(x * x) : x * x;
  WideFloat power = x, sum = x;
  for (unsigned n = 3;; n += 2) {
    power = power * square;
    const WideFloat term = power / n;
    sum = sum + term;
    if (is_negligible(term, sum)) return sum;
  }
}

// x^first / first! - x^(first+2) / (first+2)! + ...
WideFloat sine_series(const WideFloat& x, unsigned first) {
  const WideFloat square = -(x * x);
  WideFloat term = first == 0 ? one() : x, sum = term;
  for (unsigned n = first + 2;; n += 2) {
    term = term * square / (uint64_t{n - 1} * n);
    sum = sum + term;
    if (is_negligible(term, sum)) return sum;
  }
}

}  // namespace

WideFloat pi() {
  return WideFloat::constant(1, 0xc90fdaa22168c234, 0xc4c6628b80dc1cd1);
}

SineCosine sine_cosine(const X87Register& x) {
  using Integer = unsigned __int128;
  // pi / 2 in units of 2^-67: C90FDAA22168C234C, of which 66 bits are significant.
  constexpr Integer kQuarterTurn = Integer{0xc90fdaa22168c234} << 4 | 0xc;
  const WideFloat argument = WideFloat::of(x);
  WideFloat angle = magnitude(argument);
  unsigned quarters = 0;
  if (angle.exponent >= -4) {
    // In the same units the argument is its significand times 2^(exponent + 4). Reduce it bit by bit.
    auto rest = static_cast<Integer>(static_cast<uint64_t>(angle.significand >> 64));
    for (int i = 0; i < angle.exponent + 4; ++i) {
      rest <<= 1;
      quarters <<= 1;
      if (rest >= kQuarterTurn) {
        rest -= kQuarterTurn;
        quarters |= 1;
      }
    }
    const bool beyond_half = rest > kQuarterTurn - rest;
    if (beyond_half) ++quarters;
    const Integer distance = beyond_half ? kQuarterTurn - rest : rest;
    angle = WideFloat::of(static_cast<int64_t>(distance >> 8)).times_power_of_two(8) +
            WideFloat::of(static_cast<int64_t>(distance & 0xff));
    angle = angle.times_power_of_two(-67);
    angle.negative = beyond_half;
  }
  const WideFloat sine = sine_series(angle, 1), cosine = sine_series(angle, 0);
  SineCosine result;
  switch (quarters & 3) {
    case 0:
      result = {sine, cosine};
      break;
    case 1:
      result = {cosine, -sine};
      break;
    case 2:
      result = {-sine, -cosine};
      break;
    default:
      result = {-cosine, sine};
      break;
  }
  if (argument.negative) result.sine = -result.sine;
  return result;
}

WideFloat tangent(const X87Register& x) {
  const WideFloat wide = WideFloat::of(x);
  // The result is so close to the argument that the rounded quotient below could equal the argument.
  if (wide.exponent < -40) return wide + wide * wide * wide / 3;
  const SineCosine values = sine_cosine(x);
  return values.sine / values.cosine;
}

WideFloat arctangent(const WideFloat& y, const WideFloat& x) {
  const WideFloat a = magnitude(y), b = magnitude(x);
  const bool steep = (b - a).negative;  // beyond the diagonal
  const WideFloat slope = steep ? b / a : a / b;
  // Roughly from tan(pi/8) to 1, computed from the diagonal downwards.
  const bool near_diagonal =
      slope.exponent >= -1 || (slope.exponent == -2 && (slope.significand >> 126) == 3);
  WideFloat angle = near_diagonal ? pi().times_power_of_two(-2) -
                                        inverse_tangent_series((one() - slope) / (one() + slope), true)
                                  : inverse_tangent_series(slope, true);
  if (steep) angle = pi().times_power_of_two(-1) - angle;
  if (x.negative) angle = pi() - angle;
  angle.negative = y.negative;
  return angle;
}

WideFloat power_of_two_minus_one(const WideFloat& x) {
  const WideFloat y = x * natural_logarithm_of_two();
  WideFloat term = y, sum = y;
  for (unsigned n = 2;; ++n) {
    term = term * y / n;
    sum = sum + term;
    if (is_negligible(term, sum)) return sum;
  }
}

WideFloat logarithm(const WideFloat& x) {
  // x = m * 2^whole with m roughly between sqrt(1/2) and sqrt(2), so that nothing cancels.
  const bool high = (x.significand >> 125) >= 6;  // 1.5 and above
  const int whole = x.exponent + (high ? 1 : 0);
  const WideFloat m{false, high ? -1 : 0, x.significand};
  const WideFloat s = (m - one()) / (m + one());
  if (s.is_zero()) return WideFloat::of(whole);
  const WideFloat fraction =
      inverse_tangent_series(s, false).times_power_of_two(1) / natural_logarithm_of_two();
  return WideFloat::of(whole) + fraction;
}

WideFloat logarithm_plus_one(const WideFloat& x) {
  if (x.exponent >= -2) return logarithm(one() + x);
  const WideFloat s = x / (WideFloat::of(2) + x);
  return inverse_tangent_series(s, false).times_power_of_two(1) / natural_logarithm_of_two();
}

}  // namespace slalom::vm
