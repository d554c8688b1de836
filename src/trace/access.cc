#include "trace/access.h"

#include <array>
#include <cstring>

#include "base/hash.h"

namespace slalom {

std::string_view name(Modify modify) {
  static constexpr std::array<std::string_view, 20> kNames = {
      "",    "add", "or",   "adc",  "sbb",     "and", "sub", "xor", "inc",   "dec",
      "not", "neg", "xchg", "xadd", "cmpxchg", "bts", "btr", "btc", "shift", "modify"};
  return kNames.at(static_cast<size_t>(modify));
}

uint64_t fold_value(const void* bytes, size_t size) {
  uint64_t value = 0;
  if (size <= 8) {
    std::memcpy(&value, bytes, size);
    return value;
  }
  uint64_t hash = size;
  const char* at = static_cast<const char*>(bytes);
  for (; size >= 8; at += 8, size -= 8) {
    std::memcpy(&value, at, 8);
    hash = combine(hash, value);
  }
  value = 0;
  std::memcpy(&value, at, size);
  return combine(hash, value);
}

}  // namespace slalom
