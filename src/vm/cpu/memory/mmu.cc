#include "vm/cpu/memory/mmu.h"

#include <algorithm>
#include <cstring>

#include "vm/cpu/blocks.h"
#include "vm/cpu/memory/record.h"
#include "vm/cpu/memory/walk.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {
namespace {

// A part of an access, in RAM or in a device.
struct Piece {
  uint8_t* host = nullptr;
  Physical physical = 0;
  uint64_t ram_page = Ram::kNoPage;
};

bool is_stack(const Op* op) {
  return op->segment == kFlatStack || op->segment == uint8_t{kLegacySegments} + uint8_t{kSs};
}

void fill(Cpu& cpu, unsigned privilege, uint64_t address, const Translation& found, uint64_t ram_page) {
  Ram& ram = cpu.system.ram;
  Tlb& tlb = cpu.tlbs[privilege];
  const uint64_t page = address & kPageMask;
  const bool user = privilege == 1;
  TlbEntry entry;
  entry.addend = reinterpret_cast<uint64_t>(ram.page_data(ram_page)) - page;
  if (!user || found.user) entry.read = page;
  constexpr uint8_t needed = Ram::kDirty | Ram::kHashStale;
  const uint8_t flags = ram.flags(ram_page);
  const bool may_write = found.writable || (!user && !(cpu.regs.cr0 & cr0::kWp));
  if (entry.read == page && may_write && found.dirty && (flags & needed) == needed &&
      !(flags & (Ram::kCode | Ram::kPageTable))) {
    entry.write = page;
    ram.set_flag(ram_page, Ram::kInTlb);
  }
  if (entry.read == page && !found.no_execute) entry.execute = page;
  if (static_cast<int64_t>(page) >= 0) {
    if (tlb.low_count == Tlb::kEntries) tlb.flush_low();
    tlb.low[tlb.low_count++] = static_cast<uint16_t>(Tlb::index(page));
  }
  tlb.any = true;
  tlb.at(page) = entry;
}

bool find(Cpu& cpu, uint64_t address, AccessKind kind, unsigned privilege, Piece& piece) {
  Translation found;
  if (!walk(cpu, address, kind, privilege == 1, found)) return false;
  piece.physical = found.page | (address & ~kPageMask);
  piece.ram_page = cpu.system.ram.page_of(piece.physical);
  if (piece.ram_page == Ram::kNoPage) return true;
  if (kind == AccessKind::Write) cpu.system.ram.touch(piece.ram_page);
  fill(cpu, privilege, address, found, piece.ram_page);
  piece.host = cpu.system.ram.page_data(piece.ram_page) + (address & ~kPageMask);
  return true;
}

// For an instruction that must be the last of its block: stops unless it is.
bool must_replay(Cpu& cpu, const Op* op) {
  if (op->handler == nullptr || cpu.block == nullptr || cpu.block->count == 1) return false;
  cpu.leave = Leave::Replay;
  return true;
}

struct Split {
  Piece pieces[2];
  unsigned first = 0;  // bytes in the first piece
};

bool find_all(Cpu& cpu, const Op* op, uint64_t address, unsigned size, AccessKind kind, unsigned privilege,
              Split& split) {
  const uint64_t last = address + size - 1;
  if (cpu.long_mode() && (!is_canonical(address) || !is_canonical(last)))
    return is_stack(op) ? cpu.raise(kStackFault, 0) : cpu.raise(kProtection, 0);
  if (!cpu.long_mode()) address = static_cast<uint32_t>(address);
  split.first = static_cast<unsigned>(std::min<uint64_t>(size, kPageSize - (address & ~kPageMask)));
  if (!find(cpu, address, kind, privilege, split.pieces[0])) return false;
  if (split.first == size) return true;
  uint64_t second = address + split.first;
  if (!cpu.long_mode()) second = static_cast<uint32_t>(second);
  return find(cpu, second, kind, privilege, split.pieces[1]);
}

void read_device(Cpu& cpu, Physical address, unsigned size, std::byte* out) {
  while (size > 0) {
    const unsigned step = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
    uint64_t value = ~uint64_t{0};
    if (cpu.system.bus.is_device(address)) cpu.system.bus.read(cpu.id, address, step, value);
    std::memcpy(out, &value, step);
    out += step;
    address += step;
    size -= step;
  }
}

void write_device(Cpu& cpu, Physical address, unsigned size, const std::byte* in) {
  while (size > 0) {
    const unsigned step = size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
    uint64_t value = 0;
    std::memcpy(&value, in, step);
    if (cpu.system.bus.is_device(address)) cpu.system.bus.write(cpu.id, address, step, value);
    in += step;
    address += step;
    size -= step;
  }
  cpu.window = true;
  cpu.end_with_block();
}

bool read_pieces(Cpu& cpu, const Op* op, const Split& split, unsigned size, std::byte* out) {
  for (int i = 0; i < 2; ++i)
    if ((i == 0 || split.first < size) && split.pieces[i].host == nullptr && must_replay(cpu, op))
      return false;
  const unsigned sizes[2] = {split.first, size - split.first};
  for (int i = 0; i < 2; ++i) {
    if (sizes[i] == 0) break;
    const Piece& piece = split.pieces[i];
    if (piece.host != nullptr)
      std::memcpy(out, piece.host, sizes[i]);
    else
      read_device(cpu, piece.physical, sizes[i], out);
    out += sizes[i];
  }
  return true;
}

// Drops what a write to a page of translations makes invalid. Returns true if virtual addresses may lead to
// other code.
bool table_written(System& system, uint64_t ram_page, unsigned offset, unsigned size, bool dry) {
  TableUse& use = system.tables[ram_page];
  const uint8_t* data = system.ram.page_data(ram_page);
  bool everything = false, lower = false, code = false, lower_code = false;
  for (unsigned at = offset & ~7u; at < offset + size; at += 8) {
    uint64_t old;
    std::memcpy(&old, data + at, 8);
    if (use.ambiguous) {
      if (old & 0x100000001) everything = true;  // either half may be a 32-bit entry
    } else if (old & 1) {
      // The upper half does not depend on a program's own tables.
      const bool upper = use.level == 4 ? at >= kPageSize / 2 : static_cast<int64_t>(use.address) < 0;
      if (use.level != 1) {
        (upper ? everything : lower) = true;
      } else {
        const uint64_t address = use.address | uint64_t{at / 8} << kPageShift;
        if (!(old >> 63)) (upper ? code : lower_code) = true;
        if (!dry)
          for (const auto& cpu : system.cpus)
            for (Tlb& tlb : cpu->tlbs) tlb.drop(address);
      }
    }
  }
  if (dry) return everything || lower || code || lower_code;
  if (++use.writes >= 2048) {  // it may no longer be a table
    system.ram.clear_flag(ram_page, Ram::kPageTable);
    everything = true;
  }
  if (everything) {
    for (const auto& cpu : system.cpus) cpu->forget_translations();
    return true;
  }
  if (lower)
    for (const auto& cpu : system.cpus)
      for (Tlb& tlb : cpu->tlbs) tlb.flush_low();
  if (code)
    system.forget_jumps();
  else if (lower || lower_code)
    system.forget_low_jumps();
  return true;
}

// Does what a write needs besides storing, if the TLB does not allow the write.
bool before_write(Cpu& cpu, const Op* op, const Piece& piece, unsigned size) {
  if (piece.host == nullptr) return !must_replay(cpu, op);
  System& system = cpu.system;
  const uint8_t flags = system.ram.flags(piece.ram_page);
  const unsigned offset = piece.physical & ~kPageMask;
  if ((flags & Ram::kPageTable) && table_written(system, piece.ram_page, offset, size, true) &&
      must_replay(cpu, op))
    return false;
  if ((flags & Ram::kCode) && system.blocks->overlaps(piece.ram_page, offset, size) && must_replay(cpu, op))
    return false;
  return true;
}

void write_piece(Cpu& cpu, const Piece& piece, unsigned size, const std::byte* in) {
  if (piece.host == nullptr) return write_device(cpu, piece.physical, size, in);
  System& system = cpu.system;
  const uint8_t flags = system.ram.flags(piece.ram_page);
  const unsigned offset = piece.physical & ~kPageMask;
  if (flags & Ram::kPageTable) table_written(system, piece.ram_page, offset, size, false);
  if ((flags & Ram::kCode) && system.blocks->overlaps(piece.ram_page, offset, size))
    system.blocks->drop_page(system, piece.ram_page);
  std::memcpy(piece.host, in, size);
}

bool store_with(Cpu& cpu, const Op* op, uint64_t address, unsigned size, unsigned privilege,
                const std::byte* in, uint8_t modifies) {
  Split split;
  if (!find_all(cpu, op, address, size, AccessKind::Write, privilege, split)) return false;
  const unsigned rest = size - split.first;
  if (!before_write(cpu, op, split.pieces[0], split.first)) return false;
  if (rest > 0 && !before_write(cpu, op, split.pieces[1], rest)) return false;
  write_piece(cpu, split.pieces[0], split.first, in);
  if (rest > 0) write_piece(cpu, split.pieces[1], rest, in + split.first);
  if (cpu.recording)
    record(cpu, op, address, split.pieces[0].physical, size, fold_value(in, size), true, modifies);
  return true;
}

// Only needed while alignment is checked, because only then accesses of ring 3 never have a TLB entry. Vector
// instructions check alignment themselves.
bool aligned_enough(Cpu& cpu, uint64_t address, unsigned size) {
  return !cpu.aligned_only || size > 8 || (size & (size - 1)) != 0 || (address & (size - 1)) == 0 ||
         cpu.raise(kAlignmentCheck, 0);
}

// The TLB entry for an access of an observed CPU; nullptr if there is none.
const TlbEntry* observed_entry(Cpu& cpu, uint64_t address, unsigned size, uint64_t TlbEntry::*tag) {
  const TlbEntry& entry = cpu.tlbs[cpu.cpl == 3].at(address);
  return entry.*tag == ((address + size - 1) & kPageMask) && !cpu.aligned_only ? &entry : nullptr;
}

uint64_t buffered_value(const Cpu& cpu, unsigned size) {
  return fold_value(cpu.buffer.data(), size);
}

void record_split(Cpu& cpu, const Op* op, uint64_t address, const Split& split, unsigned size, bool wrote,
                  uint8_t modifies) {
  if (cpu.recording)
    record(cpu, op, address, split.pieces[0].physical, size, buffered_value(cpu, size), wrote, modifies);
}

// The fast half of the slow accesses, for observed CPUs: true if the TLB has an entry. The value stays in a
// register, since the host stalls if it reads back what was just written to the buffer with another size.
template <unsigned size, uint64_t TlbEntry::*tag>
[[gnu::always_inline]] inline bool load_observed(Cpu& cpu, const Op* op, uint64_t address) {
  const TlbEntry* entry = observed_entry(cpu, address, size, tag);
  if (entry == nullptr || may_be_watched(cpu, address, size)) return false;
  const auto* host = reinterpret_cast<const uint8_t*>(address + entry->addend);
  uint64_t value = 0;
  std::memcpy(&value, host, std::min(size, 8u));
  if constexpr (size > 8)
    std::memcpy(cpu.buffer.data(), host, size);
  else
    std::memcpy(cpu.buffer.data(), &value, size);
  if (cpu.is_quiet(address)) {
    cpu.add_quiet(address, *entry);
    return true;
  }
  if constexpr (size > 8) value = fold_value(host, size);
  const uint8_t modifies = tag == &TlbEntry::write ? modifies_of(cpu, op) : 0;
  record(cpu, op, address, cpu.system.ram.address_behind(host), size, value, false, modifies);
  return true;
}

template <unsigned size>
[[gnu::always_inline]] inline bool store_observed(Cpu& cpu, const Op* op, uint64_t address) {
  const TlbEntry* entry = observed_entry(cpu, address, size, &TlbEntry::write);
  if (entry == nullptr || may_be_watched(cpu, address, size)) return false;
  auto* host = reinterpret_cast<uint8_t*>(address + entry->addend);
  uint64_t value = 0;
  std::memcpy(&value, cpu.buffer.data(), std::min(size, 8u));
  if constexpr (size > 8)
    std::memcpy(host, cpu.buffer.data(), size);
  else
    std::memcpy(host, &value, size);
  if (cpu.is_quiet(address)) {
    cpu.add_quiet(address, *entry);
    return true;
  }
  if constexpr (size > 8) value = fold_value(host, size);
  record(cpu, op, address, cpu.system.ram.address_behind(host), size, value, true, modifies_of(cpu, op));
  return true;
}

const Op kNoOp{.handler = nullptr, .base = kZero, .index = kZero};

}  // namespace

template <unsigned size>
bool load_missed(Cpu& cpu, const Op* op, uint64_t address) {
  return (cpu.recording && load_observed<size, &TlbEntry::read>(cpu, op, address)) ||
         load_slow(cpu, op, address, size);
}
template <unsigned size>
bool store_missed(Cpu& cpu, const Op* op, uint64_t address) {
  return (cpu.recording && store_observed<size>(cpu, op, address)) || store_slow(cpu, op, address, size);
}
template <unsigned size>
bool load_for_write_missed(Cpu& cpu, const Op* op, uint64_t address) {
  return (cpu.recording && load_observed<size, &TlbEntry::write>(cpu, op, address)) ||
         load_for_write_slow(cpu, op, address, size);
}
#define SLALOM_SIZE(size)                                      \
  template bool load_missed<size>(Cpu&, const Op*, uint64_t);  \
  template bool store_missed<size>(Cpu&, const Op*, uint64_t); \
  template bool load_for_write_missed<size>(Cpu&, const Op*, uint64_t);
SLALOM_SIZE(1)
SLALOM_SIZE(2)
SLALOM_SIZE(4)
SLALOM_SIZE(8)
SLALOM_SIZE(10)
SLALOM_SIZE(16)
#undef SLALOM_SIZE

bool load_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size) {
  if (cpu.recording && watch(cpu, op, address, size, false)) return false;
  Split split;
  if (!aligned_enough(cpu, address, size)) return false;
  if (!find_all(cpu, op, address, size, AccessKind::Read, cpu.cpl == 3, split)) return false;
  if (!read_pieces(cpu, op, split, size, cpu.buffer.data())) return false;
  record_split(cpu, op, address, split, size, false, 0);
  return true;
}

bool store_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size) {
  const uint8_t modifies = cpu.recording ? modifies_of(cpu, op) : 0;
  if (cpu.recording && modifies == 0 && watch(cpu, op, address, size, true)) return false;
  return aligned_enough(cpu, address, size) &&
         store_with(cpu, op, address, size, cpu.cpl == 3, cpu.buffer.data(), modifies);
}

bool load_for_write_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size) {
  const uint8_t modifies = cpu.recording ? modifies_of(cpu, op) : 0;
  // A read-modify-write that must stop before its write must not begin.
  if (cpu.recording && (watch(cpu, op, address, size, false) || watch(cpu, op, address, size, true)))
    return false;
  Split split;
  if (!aligned_enough(cpu, address, size)) return false;
  if (!find_all(cpu, op, address, size, AccessKind::Write, cpu.cpl == 3, split)) return false;
  // The store that follows must not find a reason to stop.
  if (!before_write(cpu, op, split.pieces[0], split.first)) return false;
  if (split.first < size && !before_write(cpu, op, split.pieces[1], size - split.first)) return false;
  if (!read_pieces(cpu, op, split, size, cpu.buffer.data())) return false;
  record_split(cpu, op, address, split, size, false, modifies);
  return true;
}

bool load_system(Cpu& cpu, uint64_t address, unsigned size, void* out) {
  Split split;
  if (!find_all(cpu, &kNoOp, address, size, AccessKind::Read, 0, split) ||
      !read_pieces(cpu, &kNoOp, split, size, static_cast<std::byte*>(out)))
    return false;
  if (cpu.recording)
    record(cpu, &kNoOp, address, split.pieces[0].physical, size, fold_value(out, size), false, 0);
  return true;
}

bool store_system(Cpu& cpu, uint64_t address, unsigned size, const void* value) {
  return store_with(cpu, &kNoOp, address, size, 0, static_cast<const std::byte*>(value), 0);
}

bool check_writable(Cpu& cpu, uint64_t address, unsigned size) {
  Split split;
  return find_all(cpu, &kNoOp, address, size, AccessKind::Write, cpu.cpl == 3, split);
}

const uint8_t* fetch_page(Cpu& cpu, uint64_t address, uint64_t& ram_page, bool& no_ram) {
  no_ram = false;
  if (cpu.long_mode() && !is_canonical(address)) {
    cpu.raise(kProtection, 0);
    return nullptr;
  }
  const TlbEntry& entry = cpu.tlbs[cpu.cpl == 3].at(address);
  const uint64_t page = address & kPageMask;
  if (entry.execute == page) {
    const uint8_t* host = reinterpret_cast<const uint8_t*>(page + entry.addend);
    ram_page = static_cast<uint64_t>(host - cpu.system.ram.page_data(0)) >> kPageShift;
    return host;
  }
  Piece piece;
  if (!find(cpu, address, AccessKind::Execute, cpu.cpl == 3, piece)) return nullptr;
  if (piece.host == nullptr) {
    no_ram = true;
    return nullptr;
  }
  ram_page = piece.ram_page;
  return piece.host - (address - page);
}

bool segment_address(Cpu& cpu, SegmentName name, uint64_t offset, unsigned size, AccessKind kind,
                     uint64_t& linear) {
  const Segment& segment = cpu.regs.segments[name];
  const Vector vector = name == kSs ? kStackFault : kProtection;
  if (cpu.protected_mode() && !cpu.vm86()) {
    if (!segment.present() || segment.is_system()) return cpu.raise(vector, 0);
    if (kind == AccessKind::Write ? !segment.writable() || segment.is_code() : !segment.readable())
      return cpu.raise(vector, 0);
  }
  const uint64_t last = offset + size - 1;
  const bool inside = segment.expands_down()
                          ? offset > segment.limit && last <= (segment.big() ? 0xffffffffu : 0xffffu)
                          : last <= segment.limit || segment.limit == 0xffffffff;  // wraps at 4 GiB
  if (!inside) return cpu.raise(vector, 0);
  linear = static_cast<uint32_t>(segment.base + offset);
  return true;
}

bool legacy_address(Cpu& cpu, const Op* op, unsigned size, AccessKind kind, uint64_t offset) {
  if (op->bits & Op::kFar) offset += uint64_t{1} << 32;
  if (op->bits & Op::kAddress32) offset = static_cast<uint32_t>(offset);
  if (op->bits & Op::kAddress16) offset = static_cast<uint16_t>(offset);
  const auto name = static_cast<SegmentName>(op->segment - kLegacySegments);
  if (cpu.mode.is_long()) {
    cpu.linear = offset + (name == kFs || name == kGs ? cpu.regs.segments[name].base : 0);
    return true;
  }
  return segment_address(cpu, name, offset, size, kind, cpu.linear);
}

}  // namespace slalom::vm
