// ChoicePolicy: says which operations are choice points. A serialisable value in a machine's Inputs.
//
// Under every policy, a machine stops where the current agent blocks, ends or yields, at data choices, and at
// `stops`. A replay puts the positions of a schedule's switches into `stops`, so a schedule replays under any
// policy.
#pragma once

#include <cstdint>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"

namespace slalom {

struct ChoicePolicy {
  enum class Where : uint8_t {
    Everywhere,  // before every visible operation; fine-grained DPOR needs this
    Sync,        // before synchronisation and atomic operations, and at `places`
    Nowhere,     // only at `places`
  };
  struct AgentPosition {
    AgentId agent;
    uint64_t ops = 0;  // before the agent's operation with this number
    auto operator<=>(const AgentPosition&) const = default;
  };

  Where where = Where::Everywhere;
  std::vector<Place> places;         // further program counters that are choice points, sorted
  std::vector<AgentPosition> stops;  // sorted
  // Atomic operations that are no choice points under Sync, unless `places` names them. Sorted. Files do not
  // hold this list: a schedule replays without it.
  std::vector<Place> skipped_atomics;
  bool operator==(const ChoicePolicy&) const = default;
};

}  // namespace slalom
