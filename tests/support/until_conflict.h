// Searches a KernelMachine with `pos`, with forecasts that keep the agent until a conflict or without: to see
// that both make the same executions.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "explore/explorer.h"
#include "explore/strategies/pos.h"
#include "vm/control/kernel_machine.h"

namespace slalom::vm {

// Tells the strategy that the machine does not understand `until_conflict`, so that it is asked everywhere.
class WithoutConflicts final : public Machine {
 public:
  explicit WithoutConflicts(std::unique_ptr<KernelMachine> machine) : machine_(std::move(machine)) {}

  Result<void> reset(const Inputs& inputs) override { return machine_->reset(inputs); }
  Stop start(EventSink& sink) override { return without_uses(machine_->start(sink)); }
  Stop resume(Decision decision) override { return without_uses(machine_->resume(decision)); }
  Position position() const override { return machine_->position(); }
  std::vector<Option> blocked() const override { return machine_->blocked(); }
  uint64_t state_hash() const override { return machine_->state_hash(); }
  EndFacts ending() const override { return machine_->ending(); }
  bool hashes_cheaply() const override { return false; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return machine_->names(); }

 private:
  static Stop without_uses(Stop stop) {
    if (auto* point = std::get_if<ChoicePoint>(&stop)) point->uses = {};
    return stop;
  }
  std::unique_ptr<KernelMachine> machine_;
};

enum class Asked { AtConflicts, Everywhere };

struct PosSearch {
  std::vector<Schedule> schedules;  // with the digests of their executions
  uint64_t choice_points = 0;
};

inline PosSearch search_with_pos(const std::function<Result<std::unique_ptr<KernelMachine>>()>& make,
                                 const Inputs& inputs, uint64_t schedules, Asked asked) {
  const auto factory = [&]() -> Result<Worker> {
    TRY_ASSIGN(std::unique_ptr<KernelMachine> machine, make());
    if (asked == Asked::AtConflicts) return Worker{std::move(machine), nullptr};
    return Worker{std::make_unique<WithoutConflicts>(std::move(machine)), nullptr};
  };
  Pos strategy({.seed = 1});
  Explorer explorer(strategy, factory, {.inputs = inputs, .schedules = schedules});
  PosSearch all;
  explorer.on_execution = [&](const Task&, const slalom::Execution& execution) {
    all.schedules.push_back(execution.schedule);
    all.choice_points += execution.choice_points;
  };
  const Result<ExploreResult> result = explorer.run();
  CHECK(result.ok(), "{}", result.error().message);
  CHECK(result->executions == schedules, "{} executions", result->executions);
  return all;
}

}  // namespace slalom::vm
