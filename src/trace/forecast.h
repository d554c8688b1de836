// Forecast: what the search will decide at the choice points after a decision, as far as it knows. A machine
// may pass these choice points without asking. It uses as much of a forecast as it understands
// (ChoicePoint::uses), and reports choice points that it has passed in one of two ways:
//
//   keep    The search does not want to see them. The machine only counts them (ChoicePoint::passed).
//   later   The machine shows them later, one by one and in order, as if it stood at each of them. The search
//           must then decide as the forecast says.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "trace/agent.h"
#include "trace/picks.h"

namespace slalom {

// A rule by which strategies choose agents. A plain value, because another process may follow it.
struct ChoiceRule {
  static constexpr uint32_t kMostAgents = 64;

  enum class Kind : uint32_t {
    Unknown,  // the machine must ask
    InOrder,  // next_in_order(), see explore/strategy.h
    Uniform,
    Pct,
    Pos,
  } kind = Kind::Unknown;
  UniformPicks uniform{Rng(0)};
  PctPicks pct{Rng(0)};
  PosPicks pos{Rng(0)};
  // Used by Pct and Pos. An agent that is not in the list has no priority yet.
  uint32_t known = 0;
  struct {
    AgentId agent;
    int64_t priority;
  } priorities[kMostAgents];
};
static_assert(std::is_trivially_copyable_v<ChoiceRule>);

// The agents that the search will choose at the next choice points, one for each, and the rule by which it
// will choose after those. Both hold until a Data choice. The rule holds until an agent yields: from there
// on, fairness may leave out options.
struct LaterChoices {
  std::span<const AgentId> agents;
  ChoiceRule rule;
};

struct Forecast {
  // The agent goes on at this many choice points, unless it blocks, ends or yields, or other agents wake or
  // end. All machines use this.
  uint32_t keep = 0;
  // Nor does the agent go on where its operation conflicts with another agent's next operation.
  bool until_conflict = false;
  const LaterChoices* later = nullptr;  // also about the choice points of `keep`; valid during resume()
};

}  // namespace slalom
