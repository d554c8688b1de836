// When TLB entries are dropped: protected pages, and changes of the address space.
#include "vm/cpu/memory/tlb.h"

#include <cstring>
#include <span>

#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/memory/walk.h"

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
      for (JumpCache& cache : cpu.jump_caches) cache.forget_low();
      return;
    }
  }
  cpu.forget_translations();
}

void forget_all(System& system) {
  for (const auto& cpu : system.cpus) cpu->forget_translations();
}

void forget_writes(System& system) {
  for (const auto& cpu : system.cpus)
    for (Tlb& tlb : cpu->tlbs)
      if (tlb.any)
        for (TlbEntry& entry : tlb.entries) entry.write = kNoTag;
}

UpperHalf::UpperHalf(const Cpu& cpu) : cr0(cpu.regs.cr0), cr4(cpu.regs.cr4), efer(cpu.regs.efer) {
  const uint64_t root = cpu.system.ram.page_of(cpu.regs.cr3 & kTableMask);
  if (!cpu.long_mode() || root == Ram::kNoPage) return;
  known = true;
  std::memcpy(entries.data(), cpu.system.ram.page_data(root) + kPageSize / 2, entries.size());
}

namespace {

// Drops what one table of pages maps.
void forget_table(System& system, uint64_t first) {
  constexpr uint64_t kReach = 512 * kPageSize;
  for (const auto& cpu : system.cpus) {
    for (Tlb& tlb : cpu->tlbs)
      for (uint64_t address = first; address != first + kReach; address += kPageSize) tlb.drop(address);
    for (JumpCache& cache : cpu->jump_caches) {
      cache.generation = 0;
      for (JumpCache::Entry& entry : cache.entries)
        if ((entry.tag ^ cache.salt) - first < kReach) entry = {};
    }
  }
}

// Returns false if so much depends on the tables that everything must be dropped.
bool forget_tables(System& system, std::span<const uint32_t> changed) {
  bool enough = true;
  for (const uint32_t page : changed) {
    if (!(system.ram.flags(page) & Ram::kPageTable)) continue;
    const TableUse& use = system.tables[page];
    if (use.level == 4 && !use.ambiguous) continue;  // roots are compared as a whole
    // Nothing read from it is kept, so it need not be watched until it is read again. Nothing of the lower
    // half is kept anyway.
    system.ram.clear_flag(page, Ram::kPageTable);
    if (use.ambiguous || (use.level != 1 && static_cast<int64_t>(use.address) < 0))
      enough = false;
    else if (static_cast<int64_t>(use.address) < 0)
      forget_table(system, use.address);
  }
  return enough;
}

}  // namespace

uint32_t find_generation(Cpu& cpu) {
  System& system = cpu.system;
  const UpperHalf own(cpu);
  // Watch the root from now on: another CPU may have read it.
  if (own.known) note_table(system, system.ram.page_of(cpu.regs.cr3 & kTableMask), 0, 4, false);
  const auto reads_as = [&own](UpperHalf other) {
    // PSE (4 MiB pages) makes no difference, and Linux sets it on the first CPU only.
    other.cr4 ^= (other.cr4 ^ own.cr4) & cr4::kPse;
    return other == own;
  };
  // Observation depends on the privilege, which may differ now.
  const auto mode = [](const Cpu& one) { return one.mode.bits & ~CodeMode::kObserved; };
  for (const auto& other : system.cpus) {
    const uint32_t generation = other->jump_caches[0].generation;
    if (cpu.cpl == 0 && own.known && generation != 0 && other->tap == cpu.tap && mode(*other) == mode(cpu) &&
        reads_as(UpperHalf(*other)))
      return generation;
  }
  constexpr uint32_t kLast = ~uint32_t{0};
  return system.generations == kLast ? 0 : ++system.generations;
}

void forget_restored(System& system, std::span<const UpperHalf> before, std::span<const uint32_t> changed) {
  if (!forget_tables(system, changed)) return forget_all(system);
  forget_writes(system);
  for (const auto& cpu : system.cpus) {
    const UpperHalf& old = before[cpu->id];
    if (!old.known || UpperHalf(*cpu) != old) {
      cpu->forget_translations();
      continue;
    }
    for (Tlb& tlb : cpu->tlbs) tlb.flush_low();
    for (JumpCache& cache : cpu->jump_caches) cache.forget_low();
  }
}

}  // namespace slalom::vm
