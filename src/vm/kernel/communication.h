// Communication: which instructions of an execution accessed memory that another CPU accessed too, at least
// one of the two writing (SKI, section 4).
//
// Memory is looked at in granules of eight bytes, by physical address: neighbours in one granule count as
// communicating, which makes too many points but misses none.
#pragma once

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
    uint8_t readers = 0, writers = 0;  // a bit for each CPU
    uint32_t last_pc = 0;              // index + 1 into users_, the latest
  };
  struct User {
    uint64_t pc;
    uint32_t before;  // the one that came before it in its cell
  };
  void use(uint64_t granule, unsigned cpu, const Access& access);

  FlatMap<uint16_t> seen_;   // by granule and instruction: which CPUs have read, and written
  FlatMap<uint32_t> index_;  // of a granule: into cells_, plus one
  std::vector<Cell> cells_;
  std::vector<User> users_;
};

}  // namespace slalom::vm
