// Reads what a boot loader has put into guest memory. A read outside of memory fails the test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/little_endian.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

constexpr uint64_t kMiB = 1 << 20;

template <class T>
T peek(const Ram& ram, Physical address) {
  std::vector<uint8_t> bytes(sizeof(T));
  EXPECT_TRUE(ram.read(address, bytes)) << address;
  return *get_le<T>(bytes, 0);
}

inline std::string peek_text(const Ram& ram, Physical address) {
  std::string text;
  while (const uint8_t byte = peek<uint8_t>(ram, address++)) text += static_cast<char>(byte);
  return text;
}

}  // namespace slalom::vm
