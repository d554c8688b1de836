// How the shrinker shrinks schedules of long executions.
//
// An execution with a choice point at each of a million operations takes seconds. One with choice points only
// at synchronisation and at deviations takes a tenth of a second. The tries here are of the second kind. They
// show the same executions, because the default order lets the agent go on everywhere else.
//
// The most promising tries come first: the default order, then single preemptions of the schedule without its
// other preemptions. Among these, preemptions at accesses that race come first, then the later ones. After
// that, the shrinker leaves out deviations by halves, as in every schedule. The budget counts steps, so that
// the result is the same on every machine.
#include <algorithm>

#include "explore/replay.h"
#include "explore/shrink/shrink.h"

namespace slalom {
namespace {

constexpr uint64_t kChoiceCost = 50;   // cost of a choice point in steps: it takes two process switches
constexpr uint64_t kEndlessTries = 2;  // tries for an execution that goes on to the step limit
constexpr size_t kMostAlone = 16;      // preemptions that are tried without the others
constexpr uint64_t kNearShare = 3;     // smaller bounds near the evidence get 1/kNearShare of the budget
// The rest of the budget must allow this many tries with a choice point at each operation.
constexpr uint64_t kMostEachAsked = 50;

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

// Returns the runner of placed executions, with choice points where the schedule switches.
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
  // The proofs that follow have a choice point at each operation.
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
  std::stable_partition(preemptions.begin(), preemptions.end(), [&](const Deviation& deviation) {
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
