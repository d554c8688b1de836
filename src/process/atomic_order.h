// AtomicOrder: which atomic operations of an execution are always ordered by something else: by a lock that
// all who make them hold, or by the start and the end of threads. The search need not switch there. Of an
// operation that is itself the synchronisation, or of which nothing is known, it is not said.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/flat_map.h"
#include "base/strong.h"
#include "preload/protocol.h"

namespace slalom {

class AtomicOrder {
 public:
  void clear();
  void add(const preload::Record& access);
  void add_event(const preload::Record& event);
  std::vector<Place> seen() const;         // all atomic operations; sorted
  std::vector<Place> conflicting() const;  // those of them that something else does not order; sorted

 private:
  // Accesses to one address; those that differ in nothing that matters are one.
  struct Access {
    uint64_t pc;
    uint32_t agent, epoch, locks;
    bool wrote;
    bool operator==(const Access&) const = default;
  };
  static constexpr size_t kMost = 16;  // different ones: more are taken to conflict
  struct Address {
    Access accesses[kMost];
    uint32_t count = 0;
  };
  struct Agent {
    std::vector<uint32_t> clock;  // of every agent: its last epoch that is ordered before
    std::vector<uint64_t> held;   // locks, twice their address; and 1 where it is not shared. Sorted
    uint32_t locks = 0;           // the number of `held`, in lock_sets_
  };
  Agent& agent(uint32_t index);
  bool ordered(const Access& before, const Access& now);
  bool share_a_lock(uint32_t a, uint32_t b) const;
  void hold(uint32_t index, uint64_t lock, bool takes);

  FlatMap<Address> addresses_;
  FlatMap<uint8_t> places_;  // 1: it conflicts
  std::vector<Agent> agents_;
  std::map<std::vector<uint64_t>, uint32_t> lock_numbers_;
  std::vector<std::vector<uint64_t>> lock_sets_;
  bool all_conflict_ = false;  // a handler runs in the thread that it interrupts; a child has what is then
};

}  // namespace slalom
