// Page walks with two, three and four levels.
#pragma once

#include "vm/cpu/memory/mmu.h"

namespace slalom::vm {

inline constexpr uint64_t kTableMask = 0x000000fffffff000;  // 40 bits of physical address

struct Translation {
  Physical page = 0;
  bool writable = false;
  bool user = false;
  bool no_execute = false;
  bool dirty = false;  // the leaf entry has its D bit set
};

// Checks access rights and sets accessed and dirty bits. If it returns false, cpu.fault is a page fault.
bool walk(Cpu& cpu, uint64_t address, AccessKind kind, bool user, Translation& out);

// Watches writes to this page from now on. The page holds translations for addresses from `address` on.
void note_table(System& system, uint64_t ram_page, uint64_t address, unsigned level, bool ambiguous);

}  // namespace slalom::vm
