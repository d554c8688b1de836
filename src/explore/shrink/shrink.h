// Shrinker: makes a schedule that shows a bug as small as re-execution can prove.
//
// A schedule is cut down to its *deviations*: the decisions that differ from the default order (go on; else
// the next agent). First it looks near the evidence for a schedule with fewer preemptions: depth-first, by
// number of preemptions, which are placed only where the search itself would have switched. A result is
// Minimal: leaving out any one remaining deviation loses the bug, each shown by an execution. It is Minimum
// when, beyond that, all schedules with fewer preemptions were explored, none was cut off, and none showed
// the bug. The order constraints are what the bug really needs: pairs of conflicting operations which, turned
// round, lose it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explore/runner.h"

namespace slalom {

class Dpor;

struct ShrinkOptions {
  uint64_t executions = 50'000;  // budget for all of it,
  uint64_t steps = 20'000'000;   // and for all steps in these: some executions are long
  // An execution of so many steps is a long one: see shrink_long.cc. 0: none is.
  uint64_t long_steps = 0;
  uint64_t long_cost = 100'000'000;      // budget for all long executions, instead of `steps`
  uint64_t minimum_executions = 20'000;  // budget for proving the minimum; 0: do not try
  // What is looked at for that, in operations: of all executions, and a fiftieth of it of a single one.
  uint64_t minimum_footprints = 5'000'000;
  uint64_t near_executions = 5'000;  // budget for smaller bounds near the evidence
  std::function<bool()> stop;        // asked now and then; true ends it with what was reached
};

// An operation in an execution, placed by its agent's own count.
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
  uint64_t excluded =
      0;  // every schedule with fewer preemptions than this was executed, and none shows the bug
  uint64_t executions = 0;  // spent
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
    AgentId current;  // who was running
    uint64_t ops = 0;
    uint32_t ordinal = 0;  // of a data choice
    AgentId to;            // no agent: a data choice
    uint32_t value = 0;
    bool preempts = false;
    Place pc;  // of the operation before which it preempts
  };
  class Walk;
  struct Trial {
    Execution execution;
    std::vector<Deviation> deviations;
    std::optional<Verdict> verdict;  // if it shows the bug
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
  // Of long executions (shrink_long.cc):
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
  // Makes executions that are asked only at synchronisation and where a deviation is; else runner_ does.
  std::optional<Runner> placed_;
};

uint64_t count_preemptions(const Execution& execution);
uint64_t length_of(const Execution& execution);  // without set-up

}  // namespace slalom
