// What makes TLB entries go: pages that must not be written unnoticed, other address spaces.
#include "vm/memory/tlb.h"

#include <cstring>

#include "vm/memory/mmu.h"
#include "vm/memory/walk.h"

namespace slalom::vm {

void protect_page(System& system, uint64_t ram_page) {
  Ram& ram = system.ram;
  if (!(ram.flags(ram_page) & Ram::kInTlb)) return;
  ram.clear_flag(ram_page, Ram::kInTlb);
  const uint64_t host = reinterpret_cast<uint64_t>(ram.page_data(ram_page));
  for (const auto& cpu : system.cpus)
    for (Tlb& tlb : cpu->tlbs)
      for (TlbEntry& entry : tlb.entries)
        if (entry.write != kNoTag && entry.write + entry.addend == host) entry.write = kNoTag;
}

void address_space_changed(Cpu& cpu, uint64_t old_cr3) {
  Ram& ram = cpu.system.ram;
  const uint64_t before = ram.page_of(old_cr3 & kTableMask), after = ram.page_of(cpu.regs.cr3 & kTableMask);
  if (cpu.long_mode() && before != Ram::kNoPage && after != Ram::kNoPage) {
    note_table(cpu.system, after, 0, 4, false);
    // Entries of the upper half stay, if both spaces share it.
    if (std::memcmp(ram.page_data(before) + 2048, ram.page_data(after) + 2048, 2048) == 0) {
      for (Tlb& tlb : cpu.tlbs) tlb.flush_low();
      for (JumpCache& cache : cpu.jump_caches)
        if (cache.has_low) cache.forget();
      return;
    }
  }
  cpu.forget_translations();
}

void forget_all(System& system) {
  for (const auto& cpu : system.cpus) cpu->forget_translations();
}

}  // namespace slalom::vm
