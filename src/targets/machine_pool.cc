#include "targets/machine_pool.h"

#include <algorithm>
#include <functional>

#include "vm/snapshot/copy.h"

namespace slalom {
namespace {

class BorrowedMachine final : public Machine {
 public:
  using GiveBack = std::function<void(std::unique_ptr<vm::KernelMachine>)>;
  BorrowedMachine(std::unique_ptr<vm::KernelMachine> machine, GiveBack give_back, ExecutionFigures* figures,
                  bool checkpoints)
      : machine_(std::move(machine)),
        give_back_(std::move(give_back)),
        figures_(figures),
        checkpoints_(checkpoints) {}
  ~BorrowedMachine() override { give_back_(std::move(machine_)); }

  Result<void> reset(const Inputs& inputs) override { return machine_->reset(inputs); }
  Stop start(EventSink& sink) override { return machine_->start(sink); }
  Stop resume(Decision decision) override {
    Stop stop = machine_->resume(decision);
    if (figures_ != nullptr && std::holds_alternative<Outcome>(stop)) figures_->add(*machine_);
    return stop;
  }
  Position position() const override { return machine_->position(); }
  std::vector<Option> blocked() const override { return machine_->blocked(); }
  uint64_t state_hash() const override { return machine_->state_hash(); }
  EndFacts ending() const override { return machine_->ending(); }
  bool hashes_cheaply() const override { return machine_->hashes_cheaply(); }
  Snapshots* snapshots() override { return checkpoints_ ? machine_->snapshots() : nullptr; }
  const Names& names() const override { return machine_->names(); }

 private:
  std::unique_ptr<vm::KernelMachine> machine_;
  GiveBack give_back_;
  ExecutionFigures* figures_;  // nullptr if no one collects figures
  bool checkpoints_;
};

}  // namespace

void ExecutionFigures::add(const vm::KernelMachine& machine) {
  const std::lock_guard lock(mutex_);
  instructions_.push_back(machine.instructions());
  const auto waits = machine.liveness_counts();
  bool any = false;
  for (unsigned why = 1; why < waits.size(); ++why) {
    executions_[why] += waits[why] > 0;
    times_[why] += waits[why];
    any = any || waits[why] > 0;
  }
  executions_[0] += any;
}

std::vector<std::pair<std::string, double>> ExecutionFigures::take() {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, double>> figures;
  std::vector<uint64_t> all = std::exchange(instructions_, {});
  const auto executions = std::exchange(executions_, {});
  const auto times = std::exchange(times_, {});
  if (all.empty()) return figures;
  std::ranges::sort(all);
  const auto count = static_cast<double>(all.size());
  uint64_t sum = 0;
  for (const uint64_t one : all) sum += one;
  figures.emplace_back("instructions_median", static_cast<double>(all[all.size() / 2]));
  figures.emplace_back("instructions_mean", static_cast<double>(sum) / count);
  for (unsigned why = 1; why < executions.size(); ++why) {
    figures.emplace_back(fmt::format("h{}_share", why), static_cast<double>(executions[why]) / count);
    figures.emplace_back(fmt::format("h{}_mean", why), static_cast<double>(times[why]) / count);
  }
  figures.emplace_back("h_share", static_cast<double>(executions[0]) / count);
  return figures;
}

Result<std::unique_ptr<vm::KernelMachine>> MachinePool::take() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    std::unique_ptr<vm::KernelMachine> machine = std::move(idle_.back());
    idle_.pop_back();
    return machine;
  }
  TRY_ASSIGN(vm::Booted copy, vm::copy_of(first_));
  return std::make_unique<vm::KernelMachine>(std::move(copy), options_, names_);
}

void MachinePool::give_back(std::unique_ptr<vm::KernelMachine> machine) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(machine));
}

std::unique_ptr<Machine> borrow(std::unique_ptr<vm::KernelMachine> machine,
                                std::function<void(std::unique_ptr<vm::KernelMachine>)> give_back,
                                ExecutionFigures* figures, bool checkpoints) {
  return std::make_unique<BorrowedMachine>(std::move(machine), std::move(give_back), figures, checkpoints);
}

Result<std::unique_ptr<Machine>> borrow(const std::shared_ptr<MachinePool>& pool, const MachineUse& use) {
  TRY_ASSIGN(std::unique_ptr<vm::KernelMachine> one, pool->take());
  one->recognise(use.recognise);
  auto give_back = [pool](std::unique_ptr<vm::KernelMachine> done) { pool->give_back(std::move(done)); };
  return borrow(std::move(one), std::move(give_back), &pool->figures, use.checkpoints);
}

}  // namespace slalom
