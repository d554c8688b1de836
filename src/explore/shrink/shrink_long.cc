// How findings of long executions are shrunk.
//
// An execution that is asked at each of a million operations takes seconds; one that is asked only where it
// synchronises and where a deviation is takes a tenth of one. The tries are of the second kind: they show the
// same executions, since the default order goes on wherever it is not asked. The most promising come first:
// the default order, then one of the schedule's preemptions without the others, the last ones first, and of
// these those at accesses that race. Then deviations are left out by halves, as in every schedule. All of it
// has a budget in steps, so that the result is the same on every machine.
#include <algorithm>

#include "explore/replay.h"
#include "explore/shrink/shrink.h"

namespace slalom {
namespace {

constexpr uint64_t kChoiceCost = 50;     // of a choice point, in steps: processes are switched twice
constexpr uint64_t kEndlessTries = 2;    // of an execution that goes on to the step limit
constexpr size_t kMostAlone = 16;        // preemptions that are tried without the others
constexpr uint64_t kNearShare = 3;       // of the budget, for smaller bounds near the evidence
constexpr uint64_t kMostEachAsked = 50;  // tries that are asked at each operation must fit into the budget

}  // namespace

uint64_t length_of(const Execution& execution) {
  return execution.steps - execution.set_up_steps;
}

uint64_t Shrinker::cost_of(const Execution& execution) const {
  return is_long_ ? length_of(execution) + kChoiceCost * execution.choice_points : execution.positions;
}

ChoicePolicy Shrinker::placed_policy() const {
  ChoicePolicy policy = inputs_.policy;
  if (policy.where == ChoicePolicy::Where::Everywhere) policy.where = ChoicePolicy::Where::Sync;
  policy.stops.clear();
  return policy;
}

// What makes placed executions, to be asked where the schedule switches.
Runner& Shrinker::place_by(const Schedule& schedule) {
  ChoicePolicy policy = placed_policy();
  policy.stops = stops_of(schedule);
  if (placed_) {
    placed_->set_policy(policy);
    return *placed_;
  }
  RunnerOptions options;
  options.inputs = inputs_;
  options.inputs.policy = policy;
  options.recording = Recording::Choices;
  options.fair = false;
  options.checkpoint_every = 0;
  return placed_.emplace(machine_, &observer_, options);
}

void Shrinker::shrink_long(Shrunk& shrunk) {
  const uint64_t cost = cost_of(best_.execution);
  // A livelock shows only at the limit, and its schedule has thousands of switches.
  const bool endless = std::holds_alternative<LimitReached>(best_.execution.outcome);
  step_limit_ = endless ? kEndlessTries * cost : options_.long_cost;
  if (!endless) try_few_preemptions();
  reduce();
  if (!out_of_budget()) shrunk.proof = Shrunk::Proof::Minimal;
  if (shrunk.proof == Shrunk::Proof::Minimal && options_.minimum_executions > 0) {
    const uint64_t preemptions = count_preemptions(best_.execution);
    step_limit_ = std::min(options_.long_cost, spent_steps_ + options_.long_cost / kNearShare);
    try_smaller_bounds();
    step_limit_ = options_.long_cost;
    if (count_preemptions(best_.execution) < preemptions) {
      reduce();
      if (out_of_budget()) shrunk.proof = Shrunk::Proof::None;
    }
  }
  shrunk.cut_short = shrunk.proof == Shrunk::Proof::None && spent_steps_ >= step_limit_;
  // The rest asks at each operation.
  const uint64_t each_asked = length_of(best_.execution) * (1 + kChoiceCost);
  if (shrunk.proof == Shrunk::Proof::None || spent_steps_ + kMostEachAsked * each_asked > step_limit_) return;
  ScheduleWalker exact(best_.execution.schedule);
  Trial each = finish(runner_.run(Task{}, exact));
  if (!each.verdict || each.deviations.size() != best_.deviations.size()) return;
  best_ = std::move(each);
  placed_.reset();
}

void Shrinker::try_few_preemptions() {
  if (best_.deviations.empty()) return;
  const auto is_better = [&](const std::vector<Deviation>& deviations) {
    Trial trial = try_deviations(deviations);
    if (!improves(trial)) return false;
    best_ = std::move(trial);
    return true;
  };
  if (is_better({})) return;
  std::vector<Deviation> others, preemptions;
  for (const Deviation& deviation : best_.deviations)
    (deviation.preempts ? preemptions : others).push_back(deviation);
  if (preemptions.size() < 2) return;
  std::ranges::reverse(preemptions);
  std::ranges::stable_partition(preemptions, [&](const Deviation& deviation) {
    return std::ranges::binary_search(inputs_.policy.places, deviation.pc);
  });
  if (preemptions.size() > kMostAlone) preemptions.resize(kMostAlone);
  for (const Deviation& preemption : preemptions) {
    if (out_of_budget()) return;
    std::vector<Deviation> few = others;
    few.push_back(preemption);
    if (is_better(few)) return;
  }
}

}  // namespace slalom
