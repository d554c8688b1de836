// LazyFlags: the six arithmetic flags, stored as the last result and a few carries.
//
// Most flags are overwritten before any code reads them. So an operation stores only its result and carries,
// and flags are computed when they are read. `aux` holds
//   bit 31   carry out of the highest bit (CF)
//   bit 30   carry into the highest bit (OF = bit 31 ^ bit 30)
//   bit 3    carry out of bit 3 (AF)
//   bit 0    and bits 8-15: XORed into SF and the parity byte, for flags that no result can have
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "vm/cpu/registers.h"

namespace slalom::vm {

struct LazyFlags {
  int64_t result = 1;  // sign-extended
  uint64_t aux = 0;

  bool zero() const { return result == 0; }
  bool carry() const { return (aux >> 31) & 1; }
  bool overflow() const { return ((aux >> 31) ^ (aux >> 30)) & 1; }
  bool sign() const { return ((static_cast<uint64_t>(result) >> 63) ^ aux) & 1; }
  bool adjust() const { return (aux >> 3) & 1; }
  bool parity() const {
    return (std::popcount(static_cast<uint8_t>(static_cast<uint64_t>(result) ^ (aux >> 8))) & 1) == 0;
  }

  // x86's condition codes. Bit 0 negates.
  template <unsigned code>
  bool condition() const {
    constexpr unsigned kind = code >> 1;
    bool value;
    if constexpr (kind == 0) value = overflow();
    if constexpr (kind == 1) value = carry();
    if constexpr (kind == 2) value = zero();
    if constexpr (kind == 3) value = carry() || zero();
    if constexpr (kind == 4) value = sign();
    if constexpr (kind == 5) value = parity();
    if constexpr (kind == 6) value = sign() != overflow();
    if constexpr (kind == 7) value = zero() || sign() != overflow();
    return value != ((code & 1) != 0);
  }

  uint64_t arithmetic() const {
    return (carry() ? flag::kCarry : 0) | (parity() ? flag::kParity : 0) | (adjust() ? flag::kAdjust : 0) |
           (zero() ? flag::kZeroFlag : 0) | (sign() ? flag::kSign : 0) | (overflow() ? flag::kOverflow : 0);
  }
  void set_arithmetic(uint64_t flags) {
    result = (flags & flag::kZeroFlag) ? 0 : 0x100;  // positive; its low byte has even parity
    const uint64_t carry = flags & flag::kCarry;
    const uint64_t overflow = (flags & flag::kOverflow) ? 1 : 0;
    aux = carry << 31 | (carry ^ overflow) << 30 | ((flags & flag::kAdjust) ? 8 : 0) |
          ((flags & flag::kSign) ? 1 : 0) | ((flags & flag::kParity) ? 0 : 0x100);
  }

  template <class T>
  void set_result(T value) {
    result = static_cast<int64_t>(static_cast<std::make_signed_t<T>>(value));
  }
  template <class T>
  void set_logical(T value) {
    set_result(value);
    aux = 0;
  }
  // `carries`: the carry out of each bit.
  template <class T>
  void set_carries(T carries) {
    if constexpr (sizeof(T) == 8)
      aux = ((carries >> 32) & 0xc0000000) | (carries & 8);
    else if constexpr (sizeof(T) == 4)
      aux = carries & 0xc0000008;
    else
      aux = ((static_cast<uint64_t>(carries) << (32 - 8 * sizeof(T))) & 0xc0000000) | (carries & 8);
  }
  void set_carry_overflow(bool carry, bool overflow, bool adjust = false) {
    aux = static_cast<uint64_t>(carry) << 31 | static_cast<uint64_t>(carry != overflow) << 30 |
          (adjust ? 8 : 0);
  }
  // Only CF changes.
  void change_carry(bool carry) {
    const uint64_t now = static_cast<uint64_t>(carry) << 31 | static_cast<uint64_t>(carry != overflow())
                                                                  << 30;
    aux = (aux & ~uint64_t{0xc0000000}) | now;
  }

  template <class T>
  T add(T a, T b, bool carry = false) {
    const T sum = static_cast<T>(a + b + carry);
    set_result(sum);
    set_carries(static_cast<T>((a & b) | ((a | b) & ~sum)));
    return sum;
  }
  template <class T>
  T subtract(T a, T b, bool borrow = false) {
    const T difference = static_cast<T>(a - b - borrow);
    set_result(difference);
    set_carries(static_cast<T>((~a & b) | ((~a | b) & difference)));
    return difference;
  }
};

}  // namespace slalom::vm
