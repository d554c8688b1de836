#include "vm/cpu/memory/walk.h"

#include <cstring>

namespace slalom::vm {
namespace {

constexpr uint64_t kPresent = 1, kWritable = 2, kUser = 4, kAccessed = 0x20, kDirtyBit = 0x40, kLarge = 0x80,
                   kNoExecute = uint64_t{1} << 63;

// The bits of a page fault's error code that describe the access.
uint32_t attempt(const Cpu& cpu, AccessKind kind, bool user) {
  uint32_t code = user ? 4 : 0;
  if (kind == AccessKind::Write) code |= 2;
  if (kind == AccessKind::Execute && (cpu.regs.efer & efer::kNxe)) code |= 16;
  return code;
}

template <class Entry>
struct Step {
  uint64_t ram_page = Ram::kNoPage;
  unsigned offset = 0;
  Entry value = 0;
};

template <class Entry>
bool read_entry(Cpu& cpu, Physical table, unsigned index, Step<Entry>& step) {
  step.ram_page = cpu.system.ram.page_of(table);
  if (step.ram_page == Ram::kNoPage) return false;
  step.offset = static_cast<unsigned>(index * sizeof(Entry));
  std::memcpy(&step.value, cpu.system.ram.page_data(step.ram_page) + step.offset, sizeof(Entry));
  return true;
}

template <class Entry>
void set_bits(Cpu& cpu, Step<Entry>& step, uint64_t bits) {
  if ((step.value & bits) == bits) return;
  step.value |= static_cast<Entry>(bits);
  Ram& ram = cpu.system.ram;
  ram.touch(step.ram_page);
  std::memcpy(ram.page_data(step.ram_page) + step.offset, &step.value, sizeof(Entry));
}

bool allowed(const Cpu& cpu, AccessKind kind, bool user, const Translation& t) {
  if (user && !t.user) return false;
  if (kind == AccessKind::Write && !t.writable && (user || (cpu.regs.cr0 & cr0::kWp))) return false;
  return kind != AccessKind::Execute || !t.no_execute;
}

// Walks `levels` levels down from `table`. Entries have 8 bytes.
bool walk_long(Cpu& cpu, uint64_t address, AccessKind kind, bool user, Physical table, unsigned levels,
               Translation& out) {
  const bool nxe = (cpu.regs.efer & efer::kNxe) != 0;
  const bool four = cpu.long_mode();
  const uint64_t reserved = (nxe ? 0 : kNoExecute) | (four ? 0x000fff0000000000 : 0x7fffff0000000000);
  const uint32_t tried = attempt(cpu, kind, user);
  out = {.writable = true, .user = true};
  Step<uint64_t> steps[4];
  unsigned level = levels;
  for (;; --level) {
    Step<uint64_t>& step = steps[level - 1];
    const unsigned shift = kPageShift + 9 * (level - 1);
    if (!read_entry(cpu, table, (address >> shift) & 511, step))
      return cpu.raise_page_fault(address, tried | 1 | 8);
    const uint64_t first = level == 4 ? 0 : address & ~((uint64_t{1} << (shift + 9)) - 1);
    note_table(cpu.system, step.ram_page, first, level, !four);
    const uint64_t entry = step.value;
    if (!(entry & kPresent)) return cpu.raise_page_fault(address, tried);
    const bool large = level > 1 && (entry & kLarge);
    if ((entry & reserved) || (large && level > 2) || (large && (entry & 0x1fe000)))
      return cpu.raise_page_fault(address, tried | 1 | 8);
    out.writable = out.writable && (entry & kWritable);
    out.user = out.user && (entry & kUser);
    out.no_execute = out.no_execute || (entry & kNoExecute);
    if (level == 1 || large) {
      const uint64_t within = (uint64_t{1} << shift) - 1;
      out.page = (entry & kTableMask & ~within) | (address & within & kPageMask);
      break;
    }
    table = entry & kTableMask;
  }
  if (!allowed(cpu, kind, user, out)) return cpu.raise_page_fault(address, tried | 1);
  for (unsigned l = levels; l > level; --l) set_bits(cpu, steps[l - 1], kAccessed);
  set_bits(cpu, steps[level - 1], kind == AccessKind::Write ? kAccessed | kDirtyBit : kAccessed);
  out.dirty = (steps[level - 1].value & kDirtyBit) != 0;
  return true;
}

bool walk_two_levels(Cpu& cpu, uint64_t address, AccessKind kind, bool user, Translation& out) {
  const uint32_t tried = attempt(cpu, kind, user);
  out = {.writable = true, .user = true};
  Step<uint32_t> directory, table;
  if (!read_entry(cpu, cpu.regs.cr3 & 0xfffff000, (address >> 22) & 1023, directory))
    return cpu.raise_page_fault(address, tried | 1 | 8);
  note_table(cpu.system, directory.ram_page, 0, 2, true);
  if (!(directory.value & kPresent)) return cpu.raise_page_fault(address, tried);
  const bool large = (directory.value & kLarge) && (cpu.regs.cr4 & cr4::kPse);
  Step<uint32_t>* leaf = &directory;
  out.writable = directory.value & kWritable;
  out.user = directory.value & kUser;
  if (large) {
    if (directory.value & 0x3fe000) return cpu.raise_page_fault(address, tried | 1 | 8);
    out.page = (directory.value & 0xffc00000) | (address & 0x3ff000);
  } else {
    if (!read_entry(cpu, directory.value & 0xfffff000, (address >> 12) & 1023, table))
      return cpu.raise_page_fault(address, tried | 1 | 8);
    note_table(cpu.system, table.ram_page, 0, 1, true);
    if (!(table.value & kPresent)) return cpu.raise_page_fault(address, tried);
    out.writable = out.writable && (table.value & kWritable);
    out.user = out.user && (table.value & kUser);
    out.page = table.value & 0xfffff000;
    leaf = &table;
  }
  if (!allowed(cpu, kind, user, out)) return cpu.raise_page_fault(address, tried | 1);
  set_bits(cpu, directory, kAccessed);
  set_bits(cpu, *leaf, kind == AccessKind::Write ? kAccessed | kDirtyBit : kAccessed);
  out.dirty = (leaf->value & kDirtyBit) != 0;
  return true;
}

}  // namespace

void note_table(System& system, uint64_t ram_page, uint64_t address, unsigned level, bool ambiguous) {
  TableUse& use = system.tables[ram_page];
  if (system.ram.flags(ram_page) & Ram::kPageTable) {
    if (use.address != address || use.level != level) use.ambiguous = true;
    use.writes = 0;
    return;
  }
  system.ram.set_flag(ram_page, Ram::kPageTable);
  protect_page(system, ram_page);
  use = {.address = address, .level = static_cast<uint8_t>(level), .ambiguous = ambiguous, .writes = 0};
}

bool walk(Cpu& cpu, uint64_t address, AccessKind kind, bool user, Translation& out) {
  if (!(cpu.regs.cr0 & cr0::kPg)) {
    out = {.page = address & 0xfffff000, .writable = true, .user = true, .dirty = true};
    return true;
  }
  if (cpu.long_mode()) {
    // Tables do not include the sign extension of addresses.
    return walk_long(cpu, address, kind, user, cpu.regs.cr3 & kTableMask, 4, out);
  }
  if (!(cpu.regs.cr4 & cr4::kPae)) return walk_two_levels(cpu, address, kind, user, out);
  const uint64_t entry = cpu.regs.pdptes[(address >> 30) & 3];
  if (!(entry & kPresent)) return cpu.raise_page_fault(address, attempt(cpu, kind, user));
  return walk_long(cpu, address, kind, user, entry & kTableMask, 2, out);
}

bool load_pdptes(Cpu& cpu, uint64_t cr3) {
  constexpr uint64_t reserved = 0xffffff00000001e6;
  std::array<uint64_t, 4> loaded{};
  for (unsigned i = 0; i < 4; ++i) {
    const uint64_t table = (cr3 & 0xffffffe0) + 8 * i;
    const uint64_t page = cpu.system.ram.page_of(table);
    if (page == Ram::kNoPage) continue;
    std::memcpy(&loaded[i], cpu.system.ram.page_data(page) + (table & ~kPageMask), 8);
    if ((loaded[i] & kPresent) && (loaded[i] & reserved)) return cpu.raise(kProtection, 0);
  }
  cpu.regs.pdptes = loaded;
  return true;
}

bool translate_quietly(const Cpu& cpu, uint64_t address, Physical& physical) {
  const Registers& r = cpu.regs;
  const Ram& ram = cpu.system.ram;
  const TlbEntry& known = cpu.tlbs[0].entries[Tlb::index(address)];
  if (known.read == (address & kPageMask)) {
    physical = ram.address_behind(reinterpret_cast<const uint8_t*>(address + known.addend));
    return true;
  }
  if (!(r.cr0 & cr0::kPg)) {
    physical = static_cast<uint32_t>(address);
    return true;
  }
  const bool wide = cpu.long_mode() || (r.cr4 & cr4::kPae);
  const unsigned size = wide ? 8 : 4, bits = wide ? 9 : 10;
  unsigned level = cpu.long_mode() ? 4 : 2;
  Physical table = r.cr3 & (wide ? kTableMask : 0xfffff000);
  if (wide && !cpu.long_mode()) {
    const uint64_t entry = r.pdptes[(address >> 30) & 3];
    if (!(entry & kPresent)) return false;
    table = entry & kTableMask;
  }
  for (;; --level) {
    const unsigned shift = kPageShift + bits * (level - 1);
    const uint64_t page = ram.page_of(table);
    if (page == Ram::kNoPage) return false;
    uint64_t entry = 0;
    std::memcpy(&entry, ram.page_data(page) + ((address >> shift) & ((1u << bits) - 1)) * size, size);
    if (!(entry & kPresent)) return false;
    const bool large = level > 1 && (entry & kLarge) && (wide ? level == 2 : (r.cr4 & cr4::kPse) != 0);
    const uint64_t mask = wide ? kTableMask : 0xfffff000;
    if (level == 1 || large) {
      const uint64_t within = (uint64_t{1} << shift) - 1;
      physical = (entry & mask & ~within) | (address & within);
      return true;
    }
    table = entry & mask;
  }
}

}  // namespace slalom::vm
