// MachinePool: machines at the start of one kernel test, and figures of their executions. Reuses machines,
// because making one copies a guest's memory.
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

// The lengths of executions, and how often a CPU seemed to wait (SKI, tables 5 to 8).
class ExecutionFigures {
 public:
  void add(const vm::KernelMachine& machine);
  // Returns all figures since the last call, by name.
  std::vector<std::pair<std::string, double>> take();

 private:
  std::mutex mutex_;
  std::vector<uint64_t> instructions_;
  std::array<uint64_t, vm::Liveness::kReasons> executions_{}, times_{};  // by reason; 0 means any
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

// Returns a machine that passes `machine` to `give_back` when it is destroyed. `figures` is nullptr if no one
// collects them.
std::unique_ptr<Machine> borrow(std::unique_ptr<vm::KernelMachine> machine,
                                std::function<void(std::unique_ptr<vm::KernelMachine>)> give_back,
                                ExecutionFigures* figures, bool checkpoints);
// Borrows a machine of the pool for a campaign's worker.
Result<std::unique_ptr<Machine>> borrow(const std::shared_ptr<MachinePool>& pool, const MachineUse& use);

}  // namespace slalom
