#include "vm/kernel/communication.h"

#include <algorithm>

#include "base/hash.h"

namespace slalom::vm {
namespace {
constexpr uint64_t kAhead = 24;  // granules, in a long run
}  // namespace

[[gnu::always_inline]] inline void Communication::use(uint64_t granule, unsigned cpu, const Access& access) {
  // Two that meet under one hash would hide one point of an execution from a search that sees thousands.
  const uint64_t what = fold(granule, access.pc_bits << 16 | cpu << 1 | access.wrote);
  uint32_t& noted = noted_[what % noted_.size()];
  const auto mark = static_cast<uint32_t>(what >> 32);
  if (noted == mark) return;
  noted = mark;
  uint32_t& index = index_[granule];
  if (index == 0) {
    cells_.emplace_back();
    index = static_cast<uint32_t>(cells_.size());
  }
  Cell& cell = cells_[index - 1];
  cell.users[access.wrote] |= static_cast<uint8_t>(1u << cpu);
  users_.push_back({access.pc().raw, index - 1});
}

void Communication::add(unsigned cpu, std::span<const Access> accesses) {
  for (const Access& access : accesses) {
    if (access.size == 0) continue;  // a call or return
    const uint64_t first = access.physical / 8, last = (access.physical + access.size - 1) / 8;
    use(first, cpu, access);
    if (first != last) [[unlikely]]
      for (uint64_t granule = first + 1; granule <= last; ++granule) {
        index_.prefetch(granule + kAhead);
        use(granule, cpu, access);
      }
  }
}

void Communication::clear() {
  noted_.fill(0);
  index_.clear();
  cells_.clear();
  users_.clear();
}

std::vector<Place> Communication::points() const {
  std::vector<Place> points;
  for (const User& user : users_) {
    const Cell cell = cells_[user.cell];
    const unsigned both = cell.users[0] | cell.users[1];
    if (cell.users[1] != 0 && (both & (both - 1)) != 0)  // two bits, at least
      points.push_back(Place{user.pc});
  }
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

}  // namespace slalom::vm
