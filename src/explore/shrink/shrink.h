// Shrinker: makes a schedule that shows a bug as small as re-execution can prove.
//
// The *deviations* of a schedule are the decisions that differ from the default order. By default, the
// current agent goes on; if it cannot, the next agent runs.
//
// First, the shrinker looks near the evidence for a schedule with fewer preemptions. It searches depth-first,
// by number of preemptions, and preempts only where the search itself could have switched. Then it leaves out
// deviations.
//
// A result is Minimal if executions have shown that leaving out any one remaining deviation loses the bug. A
// Minimal result is Minimum if, in addition, all schedules with fewer preemptions were explored, none was cut
// off, and none showed the bug.
//
// The order constraints are the orders that the bug needs: pairs of conflicting operations whose reversal
// loses the bug.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explore/runner.h"

namespace slalom {

class Dpor;

struct ShrinkOptions {
  uint64_t executions = 50'000;  // budget for all executions
  uint64_t steps = 20'000'000;   // budget for the steps of all executions, since some are long
  // An execution of at least this many steps is long (see shrink_long.cc). 0 means that none is long.
  uint64_t long_steps = 0;
  uint64_t long_cost = 100'000'000;      // budget for all long executions, instead of `steps`
  uint64_t minimum_executions = 20'000;  // budget for proving the minimum; 0 means that it is not tried
  // Budget for the footprints of all executions in that proof, in operations. A single execution may use a
  // fiftieth of it.
  uint64_t minimum_footprints = 5'000'000;
  uint64_t near_executions = 5'000;  // budget for smaller bounds near the evidence
  std::function<bool()> stop;        // polled; returns true to end with the best result so far
};

// An operation in an execution. `ops` is its agent's own count of operations.
struct OperationPlace {
  AgentId agent;
  uint64_t ops = 0;
  PendingOp op;
};

struct Shrunk {
  enum class Proof : uint8_t { None, Minimal, Minimum };

  Schedule schedule;
  Verdict verdict;
  uint64_t deviations = 0;
  uint64_t preemptions = 0;
  Proof proof = Proof::None;
  // Every schedule with fewer preemptions than this was executed, and none shows the bug.
  uint64_t excluded = 0;
  uint64_t executions = 0;  // number of executions made
  bool cut_short = false;   // the budget for long executions was too small for a proof
  struct Constraint {
    OperationPlace before, after;
  };
  std::vector<Constraint> constraints;
};

class Shrinker {
 public:
  Shrinker(Machine& machine, Observer& observer, Inputs inputs, ShrinkOptions options = {});

  // Fails if the schedule does not show `title` when replayed.
  Result<Shrunk> shrink(const Schedule& schedule, const std::string& title);

 private:
  struct Deviation {
    AgentId current;  // the agent that was running
    uint64_t ops = 0;
    uint32_t ordinal = 0;  // of a data choice
    AgentId to;            // empty for a data choice
    uint32_t value = 0;
    bool preempts = false;
    Place pc;  // of the operation before which it preempts
  };
  class Walk;
  struct Trial {
    Execution execution;
    std::vector<Deviation> deviations;
    std::optional<Verdict> verdict;  // empty if the execution does not show the bug
  };
  std::optional<std::string> take_up(const Schedule& schedule);
  Trial try_deviations(const std::vector<Deviation>& deviations);
  Trial repeat(const Schedule& schedule);
  Trial finish(Execution execution);
  uint64_t cost_of(const Execution& execution) const;
  bool improves(const Trial& trial) const;
  bool out_of_budget() const {
    return spent_ >= options_.executions || spent_steps_ >= step_limit_ || (options_.stop && options_.stop());
  }
  ChoicePolicy near_policy() const;
  void try_smaller_bounds();
  void reduce();
  void prove_minimum(Shrunk& shrunk);
  bool search_through(Dpor& search, uint64_t& left, uint64_t& touched, std::optional<Trial>& better);
  void find_constraints(Shrunk& shrunk);
  // For long executions (shrink_long.cc):
  ChoicePolicy placed_policy() const;
  Runner& place_by(const Schedule& schedule);
  void shrink_long(Shrunk& shrunk);
  void try_few_preemptions();

  Machine& machine_;
  Observer& observer_;
  Inputs inputs_;
  ShrinkOptions options_;
  Runner runner_;
  std::string title_;
  Trial best_;
  uint64_t spent_ = 0, spent_steps_ = 0;
  uint64_t step_limit_ = 0;
  bool is_long_ = false;
  // Makes executions whose only choice points are synchronisation and deviations. If it is empty, runner_
  // makes them.
  std::optional<Runner> placed_;
};

uint64_t count_preemptions(const Execution& execution);
uint64_t length_of(const Execution& execution);  // without set-up

}  // namespace slalom
