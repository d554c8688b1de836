// Tlb: virtual pages that may be accessed through a host pointer without further checks.
//
// An entry stands for a whole page and what it allows: reading, writing, executing. It allows writing only
// while a write needs nothing but a store (see Ram's page flags). The guest cannot detect whether an entry
// exists: writes to page tables are noticed, and the entries that they change are dropped at once.
#pragma once

#include <array>
#include <cstdint>

#include "vm/memory/ram.h"

namespace slalom::vm {

inline constexpr uint64_t kPageMask = ~(kPageSize - 1);
inline constexpr uint64_t kNoTag = ~uint64_t{0};  // differs from every page

struct TlbEntry {
  uint64_t read = kNoTag;  // the virtual page, or kNoTag if reading is not allowed
  uint64_t write = kNoTag;
  uint64_t execute = kNoTag;
  uint64_t addend = 0;  // host address = virtual address + addend
};

struct Tlb {
  static constexpr unsigned kEntries = 1024;

  std::array<TlbEntry, kEntries> entries;
  // Indices of the entries of the lower half, which are dropped when the address space changes.
  std::array<uint16_t, kEntries> low;
  unsigned low_count = 0;
  bool any = false;

  static unsigned index(uint64_t address) { return (address >> kPageShift) & (kEntries - 1); }
  TlbEntry& at(uint64_t address) { return entries[index(address)]; }
  void flush() {
    if (any) entries.fill(TlbEntry{});
    any = false;
    low_count = 0;
  }
  void flush_low() {
    for (unsigned i = 0; i < low_count; ++i) entries[low[i]] = TlbEntry{};
    low_count = 0;
  }
  void drop(uint64_t address) {
    TlbEntry& entry = at(address);
    const uint64_t page = address & kPageMask;
    if (entry.read == page || entry.write == page || entry.execute == page) entry = TlbEntry{};
  }
};

}  // namespace slalom::vm
