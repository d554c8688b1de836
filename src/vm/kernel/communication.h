// Communication: which instructions of an execution accessed memory that another CPU accessed too, at least
// one of the two writing (SKI, section 4).
//
// Memory is looked at in granules of eight bytes, by physical address: neighbours in one granule count as
// communicating, which makes too many points but misses none.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "base/strong.h"
#include "trace/access.h"

namespace slalom::vm {

class Communication {
 public:
  void add(unsigned cpu, std::span<const Access> accesses);
  void clear();
  std::vector<Place> points() const;  // sorted

 private:
  struct Cell {
    uint8_t users[2] = {};  // who read, who wrote: a bit for each CPU
  };
  struct User {
    uint64_t pc;
    uint32_t cell;  // index into cells_
  };
  void use(uint64_t granule, unsigned cpu, const Access& access);

  // What was noted last, by a hash of who did what where: mostly the same is done again soon. Small, so that
  // it stays in the processor's cache; what it has forgotten is noted twice, which does no harm.
  std::array<uint32_t, 4096> noted_{};
  FlatMap<uint32_t, 2> index_;  // of a granule: into cells_, plus one
  std::vector<Cell> cells_;
  std::vector<User> users_;
};

}  // namespace slalom::vm
