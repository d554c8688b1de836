#include "campaign/step_limit.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "detect/detector_set.h"
#include "explore/in_order.h"
#include "explore/runner.h"
#include "explore/shrink/shrink.h"
#include "explore/strategies/random.h"
#include "explore/strategies/sampling.h"

namespace slalom {
namespace {

constexpr uint64_t kFirstSteps = 10'000;     // the first limit is low, so that a thread that spins shows soon
constexpr uint64_t kGrowth = 8;              // factor between a limit and the next one
constexpr uint64_t kMostSteps = 60'000'000;  // of all executions that are made to find the limit
constexpr uint64_t kMostChoices = 2'000'000;  // of each execution, because choices cost more than steps
constexpr uint64_t kRoom = 4;                 // factor from the length to the search's limit

// Passes on another walker's choices, and abandons the execution after kMostChoices.
class FewChoices : public Walker {
 public:
  explicit FewChoices(std::unique_ptr<Walker> inner) : inner_(std::move(inner)) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override {
    if (++made_ > kMostChoices) return Abandoned{"too many choices"};
    return inner_->choose(point, options, so_far);
  }
  void rule(ChoiceRule& to) const override { inner_->rule(to); }

 private:
  std::unique_ptr<Walker> inner_;
  uint64_t made_ = 0;
};

// Returns the length of one execution; empty if it spins or exceeds the budget. Deducts its cost from `left`.
std::optional<uint64_t> length_of_one(std::unique_ptr<Walker> (*make_walker)(const LongLook&),
                                      const LongLook& seen, Worker& worker, const Job& job,
                                      const std::function<bool()>& stop, uint64_t& left) {
  for (uint64_t limit = std::min(kFirstSteps, job.max_steps);; limit *= kGrowth) {
    limit = std::min(limit, left);
    RunnerOptions options;
    options.inputs = {job.policy, limit};
    options.inputs.stop = stop;
    options.checkpoint_every = 0;
    Runner runner(*worker.machine, worker.observer.get(), options);
    FewChoices walker(make_walker(seen));
    const Execution& execution = runner.run(Task{}, walker);
    left -= std::min(left, length_of(execution));
    if (ended_by_itself(execution.outcome)) return length_of(execution);
    const bool cut_off = std::holds_alternative<LimitReached>(execution.outcome);
    if (!cut_off || !execution.verdicts.empty() || left == 0 || stop()) return std::nullopt;
  }
}

std::unique_ptr<Walker> in_order(const LongLook&) {
  return std::make_unique<InOrder>();
}
std::unique_ptr<Walker> in_random_order(const LongLook& seen) {
  Task task;
  task.index = seen.index;
  return Random({.seed = seen.seed}).walker(task);
}

}  // namespace

Result<uint64_t> find_step_limit(const Target& target, const Job& job, const LongLook& seen,
                                 const std::function<bool()>& stop) {
  Worker worker;
  TRY_ASSIGN(worker.machine, target.make_machine({}));
  TRY_ASSIGN(worker.observer, select_detectors(worker.machine->names(), "livelock"));
  uint64_t left = kMostSteps;
  uint64_t length = 0;
  for (const auto make_walker : {in_order, in_random_order})
    if (left > 0 && !stop())
      length = std::max(length, length_of_one(make_walker, seen, worker, job, stop, left).value_or(0));
  return stop() || step_limit_for(length) <= job.max_steps ? 0 : length;
}

// Rounds up to two significant digits, because people read the limit.
uint64_t step_limit_for(uint64_t length) {
  uint64_t unit = 1;
  while (kRoom * length / unit >= 100) unit *= 10;
  return (kRoom * length + unit - 1) / unit * unit;
}

}  // namespace slalom
