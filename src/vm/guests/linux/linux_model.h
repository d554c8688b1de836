// LinuxModel: derives the events of a Linux kernel from those of its CPUs: locks, allocations, system calls,
// interrupts, tasks, panics, and backtraces.
//
// It stands between a tap and a GuestSink. It does not change the machine, and its output is a function of
// what the tap reports. It recognises calls of the kernel's functions (LinuxFunctions). It cannot see calls
// that the compiler has inlined; missing() names those. Explanations depend on the model; control never does.
//
// An event is emitted when it is complete: a lock when it is held, memory when the allocator returns it. A
// caller that restores another state of the machine must also restore the model's state and the open calls of
// the tap's functions, since both remember what has begun.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vm/control/guest_model.h"
#include "vm/cpu/observe/shadow_stacks.h"
#include "vm/cpu/observe/tap.h"
#include "vm/guests/linux/linux_functions.h"
#include "vm/guests/linux/linux_kernel.h"
#include "vm/guests/linux/linux_slabs.h"
#include "vm/guests/linux/linux_tasks.h"
#include "vm/guests/linux/linux_traits.h"

namespace slalom::vm {

class LinuxModel final : public GuestModel {
 public:
  // The sink must outlive the model; the kernel need not.
  LinuxModel(const GuestKernel& kernel, const GuestModelOptions& options, GuestSink& sink);

  TapFilter filter() const;  // for its tap
  void watch(Tap& tap) const override;
  std::optional<LockCall> lock_call(const FunctionWatch::Frame& frame) const override;
  std::unique_ptr<const Saved> save() const override;
  void restore(const Saved* saved) override;
  const std::vector<std::string>& missing() const { return functions_.missing(); }
  bool knows_tasks() const { return tasks_.known(); }
  // The callers of GuestEvent::stack, or of the accesses being emitted, innermost first. Only valid during a
  // call of the sink, with the option `backtraces`.
  std::vector<ShadowStacks::Frame> backtrace(uint64_t stack) const { return state_.stacks.frames(stack); }
  std::vector<ShadowStacks::Frame> backtrace(const Cpu& cpu) const;

  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override;
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override;

 private:
  // What a task has begun and not yet ended.
  struct Open {
    bool system_call = false;
    uint64_t number = 0;
    std::vector<uint8_t> vectors;  // open interrupts and exceptions, innermost last
  };
  struct Block {
    int64_t size = 0;
    uint64_t step = 0;
    bool live = false;
  };
  struct State {
    ShadowStacks stacks{linux_traits().stacks};
    std::vector<GuestTask> current;    // by CPU
    std::map<uint64_t, Open> open;     // by task
    FlatMap<uint64_t> stack_pointers;  // at the last call or return, by CPU
    FlatMap<Block> blocks;             // by address
  };
  struct SavedState final : Saved {
    explicit SavedState(const State& now) : state(now) {}
    State state;
  };

  const GuestTask& refresh(const Cpu& cpu, uint64_t step);
  void tell_accesses(const Cpu& cpu, uint64_t first_step);
  void entered(const Cpu& cpu, const CpuEvent& event, uint64_t step);
  void returned(const Cpu& cpu, const CpuEvent& event, uint64_t step);
  void allocated(const Cpu& cpu, const CpuEvent& event, const LinuxFunction& function, uint64_t address,
                 uint64_t step);
  void freed(const Cpu& cpu, const CpuEvent& event, const LinuxFunction& function, uint64_t address,
             uint64_t step);
  void lock(const Cpu& cpu, const CpuEvent& event, const LinuxFunction& function, OpKind op, uint64_t step);
  void system_call_ends(const Cpu& cpu, const CpuEvent& event, int64_t result, uint64_t step);
  void interrupt_ends(const Cpu& cpu, const CpuEvent& event, uint64_t step);
  void allocated_pages(const Cpu& cpu, const CpuEvent& event, uint64_t step);
  std::optional<LinuxSlabs::Cache> cache_of(const Cpu& cpu, const CpuEvent& event,
                                            const LinuxFunction& function, uint64_t address) const;
  void tell(const Cpu& cpu, const Event& event, std::string_view function = {},
            std::span<const uint64_t> arguments = {}, uint64_t stack = 0);

  const GuestModelOptions options_;
  GuestSink& sink_;
  LinuxFunctions functions_;
  LinuxTasks tasks_;
  LinuxSlabs slabs_;
  FlatMap<bool> chosen_;  // from options_.functions
  State state_;
  std::vector<Access> chosen_accesses_;
};

// As KernelMachine takes it; the kernel may be nullptr.
MakeGuestModel make_linux_model(std::shared_ptr<const GuestKernel> kernel);

}  // namespace slalom::vm
