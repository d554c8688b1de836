// AtomicOrder: finds the atomic operations of an execution that other synchronisation always orders: a lock
// that all agents which make them hold, or the start and the end of threads. The search need not switch
// there. Operations that are the synchronisation themselves, or of which nothing is known, are not found.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/flat_map.h"
#include "base/strong.h"
#include "trace/access.h"
#include "trace/event.h"

namespace slalom {

class AtomicOrder {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  void clear();
  // Agents are numbered from 0. `other` is the number of the event's other agent, kNone if it has none.
  void add(uint32_t agent, const Access& access);
  void add_event(uint32_t agent, uint32_t other, const Event& event);
  std::vector<Place> seen() const;         // places of all atomic operations; sorted
  std::vector<Place> conflicting() const;  // places that no other synchronisation orders; sorted

 private:
  // Uses of one address. Uses that are equal in all these fields count as one.
  struct Use {
    uint64_t pc;
    uint32_t agent, epoch, locks;
    bool wrote;
    bool operator==(const Use&) const = default;
  };
  static constexpr size_t kMost = 16;  // different uses of one address; with more, the address conflicts
  struct Address {
    Use uses[kMost];
    uint32_t count = 0;
  };
  struct Agent {
    std::vector<uint32_t> clock;  // for each agent, its last epoch that is ordered before
    // Held locks, sorted: twice the address, plus 1 if held exclusively.
    std::vector<uint64_t> held;
    uint32_t locks = 0;  // index of `held` in lock_sets_
  };
  Agent& agent(uint32_t index);
  bool ordered(const Use& before, const Use& now);
  bool share_a_lock(uint32_t a, uint32_t b) const;
  void hold(uint32_t index, uint64_t lock, bool takes);

  FlatMap<Address> addresses_;
  FlatMap<uint8_t> places_;  // 1 if the place conflicts
  std::vector<Agent> agents_;
  std::map<std::vector<uint64_t>, uint32_t> lock_numbers_{{{}, 0}};
  std::vector<std::vector<uint64_t>> lock_sets_{{}};
  // Set if the execution uses signals to itself or forks: a handler runs in the thread that it interrupts,
  // and a child inherits the state at its fork.
  bool all_conflict_ = false;
};

}  // namespace slalom
