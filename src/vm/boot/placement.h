// Puts the parts of a boot into RAM: each where it belongs, none over another, all of them within RAM.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

// Where RAM is, as a kernel is told. `usable`: not kept for tables of the platform.
struct MemoryRange {
  Physical begin = 0;
  Physical end = 0;
  bool usable = false;
  bool operator==(const MemoryRange&) const = default;
};

// The layout of the first megabyte that all loaders share.
inline constexpr Physical kLowMemoryEnd = 0x9fc00;  // from here on an EBDA would be
inline constexpr Physical kPlatformTables = 0xe0000;
inline constexpr uint64_t kPlatformTablesSize = 0x20000;
inline constexpr Physical kHighMemory = 0x100000;

std::vector<MemoryRange> memory_map(const Ram& ram);

class Placement {
 public:
  explicit Placement(Ram& ram) : ram_(ram) {}

  // `size` bytes at `address`: those given, then zeros. `what` is for the user: "the initrd".
  Result<void> put(const std::string& what, Physical address, std::span<const uint8_t> bytes, uint64_t size);
  Result<void> put(const std::string& what, Physical address, std::span<const uint8_t> bytes) {
    return put(what, address, bytes, bytes.size());
  }
  // Keeps a range free of what comes later, without touching it.
  Result<void> reserve(const std::string& what, Physical address, uint64_t size);
  // The highest page-aligned place for `size` bytes that ends at or below `limit` and begins above `floor`.
  Result<Physical> find_high(const std::string& what, uint64_t size, Physical floor, Physical limit) const;

 private:
  struct Taken {
    std::string what;
    Physical begin;
    Physical end;
  };
  const Taken* overlapping(Physical begin, Physical end) const;

  Ram& ram_;
  std::vector<Taken> taken_;
};

}  // namespace slalom::vm
