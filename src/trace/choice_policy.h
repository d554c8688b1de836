// ChoicePolicy: which operations are choice points. A serialisable value given to the machine.
//
// Whatever the policy, a machine stops where the current agent blocks, ends or yields, at data choices, and
// at `stops` (the positions of a schedule's switches: that is how a schedule replays under any policy).
#pragma once

#include <cstdint>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"

namespace slalom {

struct ChoicePolicy {
  enum class Where : uint8_t {
    Everywhere,  // before every visible operation: what fine DPOR needs
    Sync,        // before synchronisation and atomic operations, and at the places below
    Nowhere,     // only at the places below
  };
  struct Position {
    AgentId agent;
    uint64_t ops = 0;  // before the agent's operation with this number
    auto operator<=>(const Position&) const = default;
  };

  Where where = Where::Everywhere;
  std::vector<Place> places;    // program counters that are choice points too, sorted
  std::vector<Position> stops;  // sorted
  // Atomic operations that Sync passes by, unless they are among the places: sorted. Not a part of files: a
  // schedule replays without.
  std::vector<Place> passed;
  bool operator==(const ChoicePolicy&) const = default;
};

}  // namespace slalom
