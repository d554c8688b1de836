// Arithmetic on 128-bit significands with integers, and rounding to the 64 bits of x87.
#include "vm/cpu/handlers/x87/wide_float.h"

#include <bit>
#include <utility>

namespace slalom::vm {
namespace {

using Significand = WideFloat::Significand;

int leading_zeros(Significand value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  return high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<uint64_t>(value));
}

WideFloat normalized(bool negative, int exponent, Significand significand) {
  if (significand == 0) return {negative, 0, 0};
  const int up = leading_zeros(significand);
  return {negative, exponent - up, significand << up};
}

constexpr int kBias = 0x3fff, kLargest = 0x7ffe, kWrap = 24576;
enum Rounding : unsigned { kNearest, kDown, kUp, kToZero };

// The upper 64 bits of a significand, rounded. `value` is zero if rounding carried out of it.
struct Rounded {
  uint64_t value;
  bool inexact;
  bool up;
};
Rounded round_significand(Significand significand, bool negative, unsigned rounding) {
  const auto high = static_cast<uint64_t>(significand >> 64);
  const auto rest = static_cast<uint64_t>(significand);
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  bool up = false;
  if (rounding == kNearest) up = rest > kHalf || (rest == kHalf && (high & 1) != 0);
  if (rounding == kDown) up = negative && rest != 0;
  if (rounding == kUp) up = !negative && rest != 0;
  return {high + up, rest != 0, up};
}

}  // namespace

WideFloat WideFloat::of(const X87Register& finite) {
  const int exponent = x87::exponent(finite) == 0 ? 1 : static_cast<int>(x87::exponent(finite));
  return normalized(x87::is_negative(finite), exponent - kBias, Significand{finite.significand} << 64);
}

WideFloat WideFloat::of(int64_t integer) {
  const uint64_t magnitude =
      integer < 0 ? ~static_cast<uint64_t>(integer) + 1 : static_cast<uint64_t>(integer);
  return normalized(integer < 0, 127, magnitude);
}

WideFloat WideFloat::operator+(const WideFloat& other) const {
  if (is_zero()) return other;
  if (other.is_zero()) return *this;
  const WideFloat *large = this, *small = &other;
  if (large->exponent < small->exponent ||
      (large->exponent == small->exponent && large->significand < small->significand))
    std::swap(large, small);
  const int distance = large->exponent - small->exponent;
  const Significand shifted = distance < 128 ? small->significand >> distance : 1;
  if (large->negative != small->negative)
    return normalized(large->negative, large->exponent, large->significand - shifted);
  const Significand sum = large->significand + shifted;
  if (sum >= large->significand) return {large->negative, large->exponent, sum};
  return {large->negative, large->exponent + 1, sum >> 1 | Significand{1} << 127};
}

WideFloat WideFloat::operator*(const WideFloat& other) const {
  const auto a = static_cast<uint64_t>(significand >> 64), b = static_cast<uint64_t>(significand);
  const auto c = static_cast<uint64_t>(other.significand >> 64), d = static_cast<uint64_t>(other.significand);
  const Significand middle = (Significand{a} * d >> 64) + (Significand{b} * c >> 64) +
                             ((Significand{static_cast<uint64_t>(Significand{a} * d)} +
                               static_cast<uint64_t>(Significand{b} * c) + (Significand{b} * d >> 64)) >>
                              64);
  return normalized(negative != other.negative, exponent + other.exponent + 1, Significand{a} * c + middle);
}

// Divides bit by bit. The divisor must not be zero.
WideFloat WideFloat::operator/(const WideFloat& other) const {
  Significand remainder = significand, quotient = 0;
  bool carried = false;  // a 129th bit of the remainder
  for (int i = 0; i < 128; ++i) {
    quotient <<= 1;
    if (carried || remainder >= other.significand) {
      remainder -= other.significand;
      quotient |= 1;
    }
    carried = (remainder >> 127) != 0;
    remainder <<= 1;
  }
  return normalized(negative != other.negative, exponent - other.exponent, quotient);
}

WideFloat WideFloat::operator/(uint64_t small) const {
  if (is_zero()) return *this;
  const Significand quotient = significand / small, remainder = significand % small;
  const int up = leading_zeros(quotient);
  return {negative, exponent - up, quotient << up | (remainder << up) / small};
}

X87Answer WideFloat::round(uint16_t control) const {
  const uint16_t sign = negative ? 0x8000 : 0;
  if (is_zero()) return {{0, sign}, 0};
  const unsigned rounding = (control >> 10) & 3;
  int biased = exponent + kBias;
  Rounded rounded = round_significand(significand, negative, rounding);
  if (rounded.value == 0) {
    rounded.value = uint64_t{1} << 63;
    ++biased;
  }
  uint16_t raised = 0;
  if (biased > kLargest) {
    raised = x87::kOverflow;
    if ((control & x87::kOverflow) != 0) {
      const bool infinite = rounding == kNearest || rounding == (negative ? kDown : kUp);
      const uint16_t status = x87::kOverflow | x87::kPrecision;
      if (infinite) return {{uint64_t{1} << 63, static_cast<uint16_t>(sign | 0x7fff)}, status | x87::kC1};
      return {{~uint64_t{0}, static_cast<uint16_t>(sign | kLargest)}, status};
    }
    biased -= kWrap;
  } else if (biased < 1) {
    if ((control & x87::kUnderflow) != 0) {
      const int down = 1 - (exponent + kBias);  // by how many bits the significand must move down
      const Significand moved = down < 128 ? significand >> down : 0;
      const bool lost = down >= 128 || (moved << down) != significand;
      rounded = round_significand(moved | (lost ? 1 : 0), negative, rounding);
      biased = rounded.value >> 63 != 0 ? 1 : 0;
      raised = rounded.inexact ? x87::kUnderflow : 0;
    } else {
      raised = x87::kUnderflow;
      biased += kWrap;
    }
  }
  if (rounded.inexact) raised |= x87::kPrecision;
  if (rounded.up) raised |= x87::kC1;
  return {{rounded.value, static_cast<uint16_t>(sign | biased)}, raised};
}

}  // namespace slalom::vm
