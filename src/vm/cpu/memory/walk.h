// Page walks: two, three and four levels.
#pragma once

#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {

inline constexpr uint64_t kTableMask = 0x000000fffffff000;  // 40 bits of physical address

struct Translation {
  Physical page = 0;
  bool writable = false;
  bool user = false;
  bool no_execute = false;
  bool dirty = false;  // the leaf's D bit is set
};

// Checks rights and sets accessed and dirty bits. False: cpu.fault is a page fault.
bool walk(Cpu& cpu, uint64_t address, AccessKind kind, bool user, Translation& out);

// From here on writes to that page are watched: it holds translations for addresses from `address` on.
void note_table(System& system, uint64_t ram_page, uint64_t address, unsigned level, bool ambiguous);

}  // namespace slalom::vm
