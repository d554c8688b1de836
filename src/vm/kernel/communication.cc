#include "vm/kernel/communication.h"

#include <algorithm>
#include <bit>

namespace slalom::vm {

void Communication::add(unsigned cpu, std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    if (access.size == 0) continue;  // a call or return
    const uint64_t last = (access.physical + access.size - 1) / 8;
    for (uint64_t granule = access.physical / 8; granule <= last; ++granule) use(granule, cpu, access);
  }
}

void Communication::use(uint64_t granule, unsigned cpu, const Access& access) {
  // Mostly the same instruction has done the same there before. Two that meet under one key would hide one
  // point of an execution from a search that sees thousands.
  uint16_t& seen = seen_[granule * 0x9e3779b97f4a7c15u ^ access.pc_bits];
  const auto bit = static_cast<uint16_t>(1u << (cpu + (access.wrote ? 8 : 0)));
  if (seen & bit) return;
  seen |= bit;
  uint32_t& index = index_[granule];
  if (index == 0) {
    cells_.emplace_back();
    index = static_cast<uint32_t>(cells_.size());
  }
  Cell& cell = cells_[index - 1];
  (access.wrote ? cell.writers : cell.readers) |= static_cast<uint8_t>(1u << cpu);
  const uint64_t pc = access.pc().raw;
  for (uint32_t at = cell.last_pc; at != 0; at = users_[at - 1].before)
    if (users_[at - 1].pc == pc) return;
  users_.push_back({pc, cell.last_pc});
  cell.last_pc = static_cast<uint32_t>(users_.size());
}

void Communication::clear() {
  seen_.clear();
  index_.clear();
  cells_.clear();
  users_.clear();
}

std::vector<Place> Communication::points() const {
  std::vector<Place> points;
  for (const Cell& cell : cells_) {
    if (cell.writers == 0 || std::popcount(static_cast<unsigned>(cell.readers | cell.writers)) < 2) continue;
    for (uint32_t at = cell.last_pc; at != 0; at = users_[at - 1].before)
      points.push_back(Place{users_[at - 1].pc});
  }
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

}  // namespace slalom::vm
