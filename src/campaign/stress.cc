#include "campaign/stress.h"

#include <algorithm>
#include <optional>

#include "campaign/preliminary.h"
#include "detect/detector_set.h"
#include "explore/strategies/free_runs.h"

namespace slalom {

Result<StressResult> run_stress(const Target& target, const StressOptions& options) {
  if (target.traits.free_turn == 0) return error("{} is no kernel test: leave out --stress", target.id.name);
  TRY(run_preliminary(target, options.stop));
  TRY_ASSIGN(const Facilities needs, needs_of(options.detectors));
  FreeRuns strategy({.seed = options.seed, .longest_turn = target.traits.free_turn});
  ExploreOptions explore;
  explore.inputs = {.policy = {.where = ChoicePolicy::Where::Nowhere},
                    .max_steps = target.defaults.max_steps,
                    .control = Control::None};
  explore.schedules = options.runs;
  explore.workers = options.workers;
  Explorer explorer(
      strategy,
      [&]() -> Result<Worker> {
        Worker worker;
        TRY_ASSIGN(worker.machine, target.make_machine({.recognise = needs}));
        TRY_ASSIGN(worker.observer, select_detectors(worker.machine->names(), options.detectors));
        return worker;
      },
      explore);
  StressResult result;
  std::optional<std::string> trouble;
  explorer.stop = options.stop;
  explorer.on_execution = [&](const Task&, const Execution& execution) {
    if (const auto* tool = std::get_if<ToolError>(&execution.outcome); tool != nullptr && !trouble)
      trouble = tool->message;
    ++result.runs;
    bool failed = std::holds_alternative<LimitReached>(execution.outcome);
    for (const Verdict& verdict : execution.verdicts) {
      if (verdict.severity != Severity::Failure) continue;
      ++result.titles[verdict.title];
      failed = true;
    }
    result.failures += failed;
  };
  TRY(explorer.run());
  if (trouble) return error("{}", *trouble);
  return result;
}

}  // namespace slalom
