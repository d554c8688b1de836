// ChoicePolicy: says which operations are choice points. A serialisable value in a machine's Inputs.
//
// Under every policy, a machine stops where the current agent blocks, ends or yields, at data choices, before
// `accesses`, and at `stops`. A replay puts the positions of a schedule's switches into `stops`, so a
// schedule replays under any policy.
#pragma once

#include <cstdint>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

struct ChoicePolicy {
  enum class Where : uint8_t {
    Everywhere,  // before every visible operation; fine-grained DPOR needs this
    Sync,        // before synchronisation and atomic operations, and at `places`
    Nowhere,     // only at `places`
  };
  // Accesses that are choice points. Addresses are those that accesses show (Access::address, Event::object).
  // For the few accesses that a search is directed at: machines compare each access with all of them.
  struct WatchedAccess {
    Place place;                              // of the instruction; 0: any
    uint64_t first = 0, last = ~uint64_t{0};  // bytes, inclusive
    bool reads = true, writes = true;

    // An operation that reads and then writes is both.
    bool matches(Place pc, uint64_t address, uint64_t size, OpKind op) const {
      if (place.raw != 0 && pc != place) return false;
      if (address > last || address + size - 1 < first) return false;
      const bool modifies = op == OpKind::ReadModifyWrite || op == OpKind::CompareExchange;
      const bool stores = op == OpKind::Store || op == OpKind::AtomicStore;
      return (writes && (stores || modifies)) || (reads && !stores);
    }
    auto operator<=>(const WatchedAccess&) const = default;
  };
  struct AgentPosition {
    AgentId agent;
    uint64_t ops = 0;  // before the agent's operation with this number
    auto operator<=>(const AgentPosition&) const = default;
  };

  Where where = Where::Everywhere;
  std::vector<Place> places;            // further program counters that are choice points, sorted
  std::vector<AgentPosition> stops;     // sorted
  std::vector<WatchedAccess> accesses;  // sorted
  // Atomic operations that are no choice points under Sync, unless `places` names them. Sorted. Files do not
  // hold this list: a schedule replays without it.
  std::vector<Place> skipped_atomics;
  bool operator==(const ChoicePolicy&) const = default;
};

}  // namespace slalom
