// Placement: puts the parts of a boot into RAM, within its bounds and without overlaps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

// A range of RAM as described to a kernel. `usable`: not reserved for platform tables.
struct MemoryRange {
  Physical begin = 0;
  Physical end = 0;
  bool usable = false;
  bool operator==(const MemoryRange&) const = default;
};

// The layout of the first megabyte that all loaders share.
inline constexpr Physical kLowMemoryEnd = 0x9fc00;  // an EBDA would begin here
inline constexpr Physical kPlatformTables = 0xe0000;
inline constexpr uint64_t kPlatformTablesSize = 0x20000;
inline constexpr Physical kHighMemory = 0x100000;

std::vector<MemoryRange> memory_map(const Ram& ram);

class Placement {
 public:
  explicit Placement(Ram& ram) : ram_(ram) {}

  // Writes `bytes` and then zeros, `size` bytes in all. `what` names the part in messages: "the initrd".
  Result<void> put(const std::string& what, Physical address, std::span<const uint8_t> bytes, uint64_t size);
  Result<void> put(const std::string& what, Physical address, std::span<const uint8_t> bytes) {
    return put(what, address, bytes, bytes.size());
  }
  // Keeps later parts out of a range, without writing to it.
  Result<void> reserve(const std::string& what, Physical address, uint64_t size);
  // Returns the highest page-aligned address for `size` bytes that end at or below `limit` and begin at or
  // above `floor`.
  Result<Physical> find_high(const std::string& what, uint64_t size, Physical floor, Physical limit) const;

 private:
  struct TakenRange {
    std::string what;
    Physical begin;
    Physical end;
  };
  const TakenRange* overlapping(Physical begin, Physical end) const;

  Ram& ram_;
  std::vector<TakenRange> taken_;
};

}  // namespace slalom::vm
