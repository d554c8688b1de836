// WideFloat: numbers with a 128-bit significand, for functions that x87 rounds to 64 bits.
//
// It uses integer arithmetic only, so results are the same on every host. Results are truncated; their error
// is below a few units in the last of the 128 bits. A term that is too small to matter still changes that
// last bit, so that an inexact result never looks exact. Exponents are far from any limit.
#pragma once

#include <cstdint>

#include "vm/cpu/handlers/x87/x87_host.h"

namespace slalom::vm {

struct WideFloat {
  using Significand = unsigned __int128;

  bool negative = false;
  int exponent = 0;             // of a significand in [1, 2)
  Significand significand = 0;  // its highest bit is set, or the number is zero

  static WideFloat of(const X87Register& finite);
  static WideFloat of(int64_t integer);
  static WideFloat constant(int exponent, uint64_t high, uint64_t low) {
    return {false, exponent, Significand{high} << 64 | low};
  }

  bool is_zero() const { return significand == 0; }
  WideFloat operator-() const { return {!negative, exponent, significand}; }
  WideFloat operator+(const WideFloat& other) const;
  WideFloat operator-(const WideFloat& other) const { return *this + -other; }
  WideFloat operator*(const WideFloat& other) const;
  WideFloat operator/(const WideFloat& other) const;
  WideFloat operator/(uint64_t small) const;
  WideFloat times_power_of_two(int power) const { return {negative, exponent + power, significand}; }

  // Rounds as the control word requires, and returns the exceptions raised by that.
  X87Answer round(uint16_t control) const;
};

}  // namespace slalom::vm
