// Records accesses and stops at watched ones. For code that makes accesses without a TLB entry.
#pragma once

#include <cstring>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

// The same as record(), after making room in the batch.
[[gnu::noinline]] void record_in_next_batch(Cpu& cpu, const Op* op, uint64_t address, Physical physical,
                                            unsigned size, uint64_t value, bool wrote, uint8_t modifies);

// Call this after the access. `op`: the op that made it; one without a handler if the CPU made it by itself.
// `modifies`: as in Block::modifies.
[[gnu::always_inline]] inline void record(Cpu& cpu, const Op* op, uint64_t address, Physical physical,
                                          unsigned size, uint64_t value, bool wrote, uint8_t modifies) {
  Tap& tap = *cpu.tap;
  const TapFilter& filter = tap.filter;
  if (cpu.is_quiet(address)) return;
  if (address - filter.first > filter.last - filter.first || !filter.accesses) return;
  const bool by_itself = op->handler == nullptr || cpu.block == nullptr;
  const uint64_t step = tap.base_step + (by_itself ? cpu.executed() : cpu.executed_before(op));
  if (__builtin_expect(tap.next == tap.end || tap.owner != &cpu || step - tap.first_step > 0xffff, 0))
    return record_in_next_batch(cpu, op, address, physical, size, value, wrote, modifies);
  const uint64_t pc = cpu.gpr(kRip) + (by_itself ? 0 : op->offset);
  OpKind kind = wrote ? OpKind::Store : OpKind::Load;
  const auto modify = static_cast<uint8_t>(modifies & ~Block::kLocked);
  if (modifies & Block::kLocked)
    kind = modify == static_cast<uint8_t>(Modify::CompareExchange) ? OpKind::CompareExchange
                                                                   : OpKind::ReadModifyWrite;
  // Written in the order of Access's fields, one word at a time: otherwise the next load would wait for these
  // stores.
  constexpr uint64_t k48 = (uint64_t{1} << 48) - 1, k40 = (uint64_t{1} << 40) - 1;
  char* const out = reinterpret_cast<char*>(tap.next);
  const auto put = [out](unsigned word, uint64_t bits) { std::memcpy(out + 8 * word, &bits, 8); };
  put(0, (pc & k48) | static_cast<uint64_t>(kind) << 48 | uint64_t{modify} << 56);
  put(1, (address & k48) | (step - tap.first_step) << 48);
  put(2, value);
  put(3, (physical & k40) | uint64_t{size} << 40 | uint64_t{cpu.cpl} << 56 | uint64_t{wrote} << 58);
  ++tap.next;
}

inline uint8_t modifies_of(const Cpu& cpu, const Op* op) {
  return op->handler != nullptr && cpu.block != nullptr && cpu.block->modifies != nullptr
             ? cpu.block->modifies[op->number]
             : 0;
}

// Records a run of bytes at `address` as one access for each page. The value is read from `data`. Both
// addresses are virtual.
void record_run(Cpu& cpu, const Op* op, uint64_t address, uint64_t data, uint64_t size, bool wrote);

inline bool may_be_watched(const Cpu& cpu, uint64_t address, uint64_t size) {
  for (const AccessWatch& watch : cpu.tap->watches)
    if (address <= watch.last && address + size - 1 >= watch.first) return true;
  return false;
}

// Returns true if the CPU must stop before this access; then cpu.hit and cpu.leave are set. The caller must
// be able to restart the instruction from its beginning.
bool stops_before(Cpu& cpu, const Op* op, uint64_t address, uint64_t size, bool write);
inline bool watch(Cpu& cpu, const Op* op, uint64_t address, uint64_t size, bool write) {
  return !cpu.tap->watches.empty() && !cpu.watches_off && stops_before(cpu, op, address, size, write);
}

}  // namespace slalom::vm
