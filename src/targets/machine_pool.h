// MachinePool: machines that stand at the start of one kernel test, and figures of their executions. Making a
// machine means copying a guest's memory, so that machines are used again.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "campaign/target.h"
#include "vm/control/kernel_machine.h"

namespace slalom {

// How long executions were, and how often a CPU seemed to wait (SKI, tables 5 to 8).
class ExecutionFigures {
 public:
  void add(const vm::KernelMachine& machine);
  // All since the last call, by name.
  std::vector<std::pair<std::string, double>> take();

 private:
  std::mutex mutex_;
  std::vector<uint64_t> instructions_;
  std::array<uint64_t, vm::Liveness::kReasons> executions_{}, times_{};  // by reason; 0: any
};

class MachinePool {
 public:
  MachinePool(vm::Booted first, vm::KernelMachineOptions options, std::shared_ptr<const Names> names)
      : first_(std::move(first)), options_(std::move(options)), names_(std::move(names)) {}

  Result<std::unique_ptr<vm::KernelMachine>> take();
  void give_back(std::unique_ptr<vm::KernelMachine> machine);
  ExecutionFigures figures;

 private:
  std::mutex mutex_;
  vm::Booted first_;
  vm::KernelMachineOptions options_;
  std::shared_ptr<const Names> names_;
  std::vector<std::unique_ptr<vm::KernelMachine>> idle_;
};

// A machine that goes back where it came from when its user is done with it. `figures`: nullptr if nobody
// wants them.
std::unique_ptr<Machine> borrow(std::unique_ptr<vm::KernelMachine> machine,
                                std::function<void(std::unique_ptr<vm::KernelMachine>)> give_back,
                                ExecutionFigures* figures, bool checkpoints);
// As a campaign's worker uses it.
Result<std::unique_ptr<Machine>> borrow(const std::shared_ptr<MachinePool>& pool, const MachineUse& use);

// Runs without control, with the failures that the detectors of `list` see. `most`: instructions of a run.
Result<Target::Stress> stress(MachinePool& pool, unsigned flows, uint64_t most, uint64_t runs, uint64_t seed,
                              const std::string& list);

}  // namespace slalom
