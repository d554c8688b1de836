// KernelContexts: the contexts of a kernel under test, which are its agents: each CPU, and each interrupt
// that is pending for a CPU or runs on one. It knows which contexts can run, and offers those to the search.
// It delivers interrupts, and notices when their handlers end.
//
// With a scope, it also knows which CPUs execute code of the scope.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "machine/machine.h"
#include "trace/choice.h"
#include "vm/control/course.h"
#include "vm/control/kernel_options.h"
#include "vm/control/liveness.h"
#include "vm/control/next_operation.h"
#include "vm/pc/pc.h"

namespace slalom::vm {

class KernelContexts final : public OptionSource {
 public:
  KernelContexts(Pc& pc, Tap& tap, const KernelMachineOptions& options, CourseRecorder& course)
      : pc_(pc), tap_(tap), options_(options), course_(course) {}

  static constexpr uint64_t kAllPlaces = ~uint64_t{0} >> 1;  // more than a run can pass

  static AgentId cpu_agent(unsigned cpu) { return AgentId::initial(cpu); }
  // `nested`: the number of running contexts of the same interrupt that it has interrupted.
  static AgentId interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested = 0);

  struct Interrupt {  // the context of an interrupt that runs on a CPU
    AgentId agent;
    uint64_t return_rip = 0, return_rsp = 0;
  };
  struct CpuState {
    std::vector<Interrupt> interrupts;  // the innermost last
    bool parked = false;                // at SLALOM_DONE, and not interrupted since
    bool done = false;                  // its flow is done
    std::optional<uint8_t> offered;     // a pending interrupt for which a choice point was made
    unsigned early_timers = 0;          // timers that have fired early
    bool inside = false;                // the CPU executes code of the scope
    uint64_t in_a_row = 0;              // instructions since another CPU ran
    bool at_access = false;             // it stands before a watched access at which the search was asked
    Liveness liveness;
  };
  struct State {
    std::vector<CpuState> cpus;
    unsigned current = 0;                 // the CPU that runs, or ran last
    ChoiceKind kind = ChoiceKind::Start;  // of the last choice point
  };

  void set_control(Control control) { control_ = control; }  // of the next executions
  void begin();                                              // a new execution
  const State& save() const { return state_; }
  void restore(const State& state);

  unsigned cpus() const { return static_cast<unsigned>(state_.cpus.size()); }
  CpuState& cpu(unsigned cpu) { return state_.cpus[cpu]; }
  const CpuState& cpu(unsigned cpu) const { return state_.cpus[cpu]; }
  unsigned current() const { return state_.current; }
  void set_current(unsigned cpu) { state_.current = cpu; }
  bool all_flows_done() const;

  // The context that runs on the CPU.
  AgentId agent(unsigned cpu) const {
    const std::vector<Interrupt>& nested = state_.cpus[cpu].interrupts;
    return nested.empty() ? cpu_agent(cpu) : nested.back().agent;
  }
  bool can_run(unsigned cpu) const;  // without an interrupt
  bool enabled(unsigned cpu) const;
  // An interrupt that the search does not decide about.
  std::optional<uint8_t> automatic_interrupt(unsigned cpu) const;
  // Returns the interrupt that the agent would become if it arrived at the CPU now; empty if none.
  std::optional<uint8_t> interrupt_of(AgentId agent, unsigned cpu) const;
  void enter_interrupt(unsigned cpu, uint8_t vector, AgentId as);
  // Ends contexts whose handler has returned. `all`: the CPU has left all handlers for good, by a switch to
  // another thread, to the idle loop or to the program.
  void leave_interrupts(unsigned cpu, bool all);

  // What the search may choose at a choice point of this kind. It is computed once, until forget_options().
  std::span<const Option> options() const override;
  void forget_options() { options_known_ = false; }
  ChoiceKind kind() const { return state_.kind; }
  void set_kind(ChoiceKind kind) { state_.kind = kind; }
  // Offers a context that seems to wait, too: it may still be able to go on, and a replay may choose it.
  void offer_waiting(AgentId agent, unsigned cpu);
  std::vector<Option> blocked() const;
  void prefetch_next(unsigned cpu) const { next_operations_.prefetch(pc_.cpu(cpu)); }
  // Whether an early timer of the CPU could still interrupt it.
  bool may_come_early(unsigned cpu) const {
    return options_.contexts.timers && state_.cpus[cpu].early_timers < options_.early_timers;
  }

  // Adds the memory that spinning CPUs wait for to what the tap watches. The running CPU stops behind writes
  // to it.
  void watch_for_writes();

  bool scoped() const { return !whole() && !options_.scope.empty(); }
  void update_scope(unsigned cpu);

 private:
  bool whole() const { return control_ == Control::Whole; }
  std::vector<uint8_t> vectors(unsigned cpu) const;  // of interrupts that could be delivered now
  // A timer interrupt that may arrive before it is due.
  std::optional<uint8_t> early_timer(unsigned cpu) const;
  AgentId arriving_agent(unsigned cpu, uint8_t vector) const;  // the agent that this interrupt would become

  Pc& pc_;
  Tap& tap_;
  const KernelMachineOptions& options_;
  CourseRecorder& course_;
  State state_;
  Control control_ = Control::Search;
  mutable std::vector<Option> options_found_;
  mutable NextOperations next_operations_;
  mutable bool options_known_ = false;
};

}  // namespace slalom::vm
