// Task: one execution to make, as a value. Any worker, in any process, makes the same execution of it.
//
// A strategy says in the hint what its walker needs beyond the decisions to repeat. Each kind of hint is a
// struct of its own, so a task of one strategy cannot be taken for that of another.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "explore/execution.h"

namespace slalom {

// An agent whose next transition need not be explored here, because an earlier branch explores it (sleep
// sets).
struct Sleeper {
  AgentId agent;
  std::vector<Touch> touches;
  bool fatal = false;  // its transition ends the execution
  bool operator==(const Sleeper&) const = default;
};

struct DfsHint {
  uint64_t cost = 0;  // of the prefix: preemptions or delays
  bool operator==(const DfsHint&) const = default;
};

struct DporHint {
  AgentId next;                   // takes the first transition after the prefix; none at the root of the tree
  std::vector<uint32_t> values;   // its answers to the data choices of that transition
  std::vector<Sleeper> sleepers;  // at the end of the prefix
  // The execution is not needed if that transition does not wake all the sleepers that it should.
  bool foreseen = false;
  bool operator==(const DporHint&) const = default;
};

struct PctHint {
  uint64_t k = 0;      // positions among which priorities change; 0 if unknown
  bool keeps = false;  // forecasts may keep agents
  bool operator==(const PctHint&) const = default;
};

struct SurwHint {
  ObjectId object;        // the interesting one; 0 for all
  uint64_t patience = 0;  // positions after which another agent is drawn
  // How many interesting operations each agent makes, by agent.
  std::vector<std::pair<AgentId, uint64_t>> operations;
  bool operator==(const SurwHint&) const = default;
};

struct SerialHint {
  std::vector<uint64_t> branches;  // which agent goes on, for each place where several may; then the first
  bool operator==(const SerialHint&) const = default;
};

// Serialised by their order: add new ones at the end.
using Hint = std::variant<std::monostate, DfsHint, DporHint, PctHint, SurwHint, SerialHint>;

// For a task of a portfolio: the strategy that made it, and the task's index there.
struct PortfolioArm {
  uint64_t number = 0, index = 0;
  bool operator==(const PortfolioArm&) const = default;
};

struct Task {
  uint64_t index = 0;
  std::vector<Pick> prefix;  // decisions to repeat before asking the walker
  uint64_t digest = 0;       // of the choice point after the prefix; 0 if unknown
  Hint hint;                 // fixed when the task is made
  std::optional<PortfolioArm> arm;

  bool operator==(const Task&) const = default;
};

// Returns the task's hint of this kind. It is an error to ask for the hint of another strategy.
template <typename Kind>
const Kind& hint_of(const Task& task) {
  const Kind* hint = std::get_if<Kind>(&task.hint);
  CHECK(hint != nullptr, "task {} is one of another strategy", task.index);
  return *hint;
}

}  // namespace slalom
