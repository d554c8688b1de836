// Forecast: how a strategy will choose from here on. A machine with a forecast can go on by itself and show
// the choice points later. The strategy still gets asked about each of them, and must give the forecast's
// answers.
//
// A forecast holds until an agent yields (from there on, fairness may leave out options) or until a Data
// choice. It is a plain value because another process may read it.
#pragma once

#include <type_traits>

#include "trace/agent.h"
#include "trace/picks.h"

namespace slalom {

struct Forecast {
  static constexpr uint32_t kMostAgents = 64;

  enum class How : uint32_t {
    Unknown,  // the machine must ask
    InOrder,  // next_in_order(), see explore/strategy.h
    Uniform,
    Pct,
    Pos,
  } how = How::Unknown;
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
static_assert(std::is_trivially_copyable_v<Forecast>);

}  // namespace slalom
