#include "vm/cpu/memory/record.h"

#include <algorithm>
#include <array>

#include "vm/cpu/memory/guest_memory.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/observe/hooks.h"

namespace slalom::vm {

// A separate function, so that the common case keeps no registers across a call.
void record_in_next_batch(Cpu& cpu, const Op* op, uint64_t address, Physical physical, unsigned size,
                          uint64_t value, bool wrote, uint8_t modifies) {
  const bool by_itself = op->handler == nullptr || cpu.block == nullptr;
  cpu.tap->make_room(cpu, cpu.tap->base_step + (by_itself ? cpu.executed() : cpu.executed_before(op)));
  record(cpu, op, address, physical, size, value, wrote, modifies);
}

void record_run(Cpu& cpu, const Op* op, uint64_t address, uint64_t data, uint64_t size, bool wrote) {
  while (size > 0) {
    std::array<uint8_t, kPageSize> bytes;
    const uint64_t piece = std::min(size, kPageSize - (address & (kPageSize - 1)));
    std::fill_n(bytes.begin(), piece, uint8_t{0});  // used if there is no RAM
    read_memory(cpu, data, std::span(bytes).first(piece));
    Physical physical = 0;
    translate_quietly(cpu, address, physical);
    record(cpu, op, address, physical, static_cast<unsigned>(piece), fold_value(bytes.data(), piece), wrote,
           0);
    address += piece;
    data += piece;
    size -= piece;
  }
}

bool stops_before(Cpu& cpu, const Op* op, uint64_t address, uint64_t size, bool write) {
  if (op->handler == nullptr || cpu.block == nullptr) return false;
  const std::vector<AccessWatch>& watches = cpu.tap->watches;
  const uint64_t pc = cpu.gpr(kRip) + op->offset;
  bool passes = false;  // the CPU has stopped before this access already
  for (uint32_t i = 0; i < watches.size(); ++i) {
    const AccessWatch& watch = watches[i];
    if (!(write ? watch.writes : watch.reads)) continue;
    if (address > watch.last || address + size - 1 < watch.first) continue;
    if (watch.pc != 0 && watch.pc != pc) continue;
    if (!watch.after && (passes || (watch.unless_place && is_place(*cpu.block, op)))) continue;
    const AccessHit hit{.watch = i,
                        .ordinal = 0,
                        .pc = pc,
                        .address = address,
                        .size = static_cast<unsigned>(size),
                        .write = write};
    if (watch.after) {
      if (cpu.block->count > 1) {
        cpu.leave = Leave::Replay;  // in a block of its own, so that the CPU can stop after it
        return true;
      }
      if (!cpu.stop_behind) cpu.hit = hit;
      cpu.stop_behind = true;
      // Do not enter another block from the end of this one. The count of executed instructions stays the
      // same.
      cpu.slice -= cpu.left;
      cpu.left = 0;
      return false;
    }
    const uint64_t instruction = cpu.executed_before(op);
    if (cpu.watched_at != instruction) cpu.watched_seen = 0;
    cpu.watched_at = instruction;
    const unsigned ordinal = cpu.watched_seen++;
    if (instruction == 0 && ordinal < cpu.watched_skip) {
      passes = true;
      continue;
    }
    cpu.hit = hit;
    cpu.hit.ordinal = ordinal;
    cpu.leave = Leave::Access;
    return true;
  }
  return false;
}

}  // namespace slalom::vm
