#include "campaign/learn_policy.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "detect/detector_set.h"
#include "explore/strategies/random.h"

namespace slalom {
namespace {

// Executions in random order before the search. Strategies that repeat prefixes cannot change their choice
// points during the search, and need the larger number.
constexpr uint64_t kShortLearning = 4, kLongLearning = 64;

Result<void> learn_places(const Target& target, const CampaignOptions& options, uint64_t executions,
                          const std::function<bool()>& stop, Job& job) {
  FirstOutcomes first(target);
  Random strategy({.seed = job.strategy.seed});
  ExploreOptions explore;
  explore.inputs = {job.policy, job.max_steps};
  explore.schedules = executions;
  explore.seconds = options.seconds;
  explore.workers = options.workers;
  explore.checkpoint_every = 0;
  Explorer explorer(
      strategy,
      [&]() -> Result<Worker> {
        Worker worker;
        TRY_ASSIGN(worker.machine, target.make_machine({.recognise = {}}));
        if (target.make_learner) worker.learner = target.make_learner(false);
        return worker;
      },
      explore);
  explorer.on_execution = [&](const Task&, const Execution& execution) { first.add(execution); };
  explorer.stop = [&] { return first.are_hopeless() || stop(); };  // the search will report the reason
  TRY_ASSIGN(const ExploreResult result, explorer.run());
  merge_places(job.policy.places, result.learned);
  DEBUG_LOG(Campaign, "learned {} places from {} executions", job.policy.places.size(), result.tasks);
  for (const Place place : job.policy.places) TRACE_LOG(Campaign, "learned place {:#x}", place.raw);
  return {};
}

// The first execution shows most of a program's accesses. The others reach rarer paths.
constexpr uint64_t kAccessRounds[] = {1, 15};
constexpr uint64_t kAccessSteps = 10'000;  // of each execution; an endless one has shown enough by then

// Adds to the policy the atomic operations that need no switch because other synchronisation always orders
// them, and the plain accesses that race. Adds nothing if the strategy adapts and each atomic operation
// conflicts. Returns the first execution that was cut off.
Result<std::optional<LongLook>> learn_accesses(const Target& target, const CampaignOptions& options,
                                               bool adapts, const std::function<bool()>& stop, Job& job) {
  Knowledge taught;
  std::vector<Place> racing;
  std::optional<LongLook> first_long;
  for (const uint64_t executions : kAccessRounds) {
    Random strategy({.seed = job.strategy.seed + executions});
    ExploreOptions explore;
    explore.inputs = {job.policy, std::min(job.max_steps, kAccessSteps)};
    explore.schedules = executions;
    explore.workers = std::min<unsigned>(options.workers, static_cast<unsigned>(executions));
    Explorer explorer(
        strategy,
        [&]() -> Result<Worker> {
          Worker worker;
          TRY_ASSIGN(worker.machine, target.make_machine({}));
          if (!adapts) {
            TRY_ASSIGN(worker.observer, select_detectors(worker.machine->names(), "race"));
          }
          if (target.make_learner) worker.learner = target.make_learner(true);
          return worker;
        },
        explore);
    explorer.stop = stop;
    explorer.on_execution = [&](const Task& task, const Execution& execution) {
      taught.merge(execution.knowledge);
      if (!first_long && std::holds_alternative<LimitReached>(execution.outcome))
        first_long = LongLook{job.strategy.seed + executions, task.index};
    };
    TRY_ASSIGN(const ExploreResult result, explorer.run());
    if (result.failed > 0) return std::optional<LongLook>();
    merge_places(racing, places_of_races(result.found));
    DEBUG_LOG(Campaign,
              "atomic operations after {} executions: {} places, {} conflicting, {} racing accesses",
              result.tasks, taught.atomics.size(), taught.places.size(), racing.size());
    if (adapts && taught.ordered_atomics().empty()) return first_long;
  }
  job.policy.skipped_atomics = taught.ordered_atomics();
  merge_places(job.policy.places, racing);
  return first_long;
}

}  // namespace

std::vector<Place> places_of_races(const std::vector<Found>& found) {
  Knowledge shown;
  for (const Found& one : found) shown.add_race(one.verdict);
  return shown.racing;
}

Result<std::optional<LongLook>> learn_policy(const Target& target, const CampaignOptions& options,
                                             bool adapts, const std::function<bool()>& stop, Job& job) {
  if (target.traits.learns)
    TRY(learn_places(target, options, adapts ? kShortLearning : kLongLearning, stop, job));
  if (target.traits.atomics && job.policy.where == ChoicePolicy::Where::Sync)
    return learn_accesses(target, options, adapts, stop, job);
  return std::optional<LongLook>();
}

}  // namespace slalom
