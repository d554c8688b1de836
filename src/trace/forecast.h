// Forecast: how a strategy will choose from here on, for machines that can go on by themselves and tell later
// where they could have gone another way. The strategy is asked then all the same, and must give these
// answers.
//
// It holds until an agent yields (fairness may leave out some options from there on) or a value is asked for.
// A plain value: it may be read in another process.
#pragma once

#include <type_traits>

#include "trace/agent.h"
#include "trace/picks.h"

namespace slalom {

struct Forecast {
  static constexpr uint32_t kMostAgents = 64;

  enum class How : uint32_t {
    Unknown,  // ask
    InOrder,  // next_in_order(), see explore/strategy.h
    Uniform,
    Pct,
    Pos,
  } how = How::Unknown;
  UniformPicks uniform{Rng(0)};
  PctPicks pct{Rng(0)};
  PosPicks pos{Rng(0)};
  // Of Pct and Pos; those who are not here have none yet.
  uint32_t known = 0;
  struct {
    AgentId agent;
    int64_t priority;
  } priorities[kMostAgents];
};
static_assert(std::is_trivially_copyable_v<Forecast>);

}  // namespace slalom
