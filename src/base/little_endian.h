// Numbers in the byte order of the PC, read and written with bounds checks.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"

namespace slalom {

// Returns nothing if the number does not lie within `bytes`.
template <std::unsigned_integral T>
std::optional<T> get_le(std::span<const uint8_t> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  uint64_t value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = value << 8 | bytes[offset + i];
  return static_cast<T>(value);
}

// The caller knows the layout, so a place outside is a bug.
template <std::unsigned_integral T>
void put_le(std::span<uint8_t> bytes, uint64_t offset, T value) {
  CHECK(offset <= bytes.size() && bytes.size() - offset >= sizeof(T), "{} of {}", offset, bytes.size());
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes[offset + i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
}

template <std::unsigned_integral T>
void append_le(std::vector<uint8_t>& bytes, T value) {
  bytes.resize(bytes.size() + sizeof(T));
  put_le(std::span(bytes), bytes.size() - sizeof(T), value);
}

// Returns a part of `bytes`; nothing if it does not lie within them.
inline std::optional<std::span<const uint8_t>> part_of(std::span<const uint8_t> bytes, uint64_t offset,
                                                       uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.subspan(offset, size);
}

}  // namespace slalom
