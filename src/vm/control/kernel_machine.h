// KernelMachine: implements the Machine interface for a kernel under test. Its agents are contexts: each CPU,
// and each interrupt that is pending for a CPU or runs on one (SKI, sections 3.4 and 5.2).
//
// An execution starts just before the flows of a test begin. It ends when all flows are done, when the kernel
// has died, or when no context can run. In between, decisions pick the one CPU that runs. An interrupt
// arrives only by a decision, and only if the CPU's interrupt flag and the priorities allow it. A timer that
// is due becomes pending. If nothing else can run, time advances to the next timer.
//
// An agent's operations are the instructions that its CPU has retired since the start. Steps are choice
// points that the policy allows: instructions that communicate, or, while none are known, all instructions
// that access shared memory.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "vm/boot/boot.h"
#include "vm/control/communication.h"
#include "vm/control/course.h"
#include "vm/control/guest_model.h"
#include "vm/control/guest_plan.h"
#include "vm/control/journal.h"
#include "vm/control/liveness.h"
#include "vm/control/next_operation.h"
#include "vm/control/scope.h"

namespace slalom::vm {

// The contexts that a search decides about. Other CPUs run only if none of these contexts can run. Other
// interrupts arrive as soon as their CPU runs and accepts them; they count as a part of that CPU's work.
struct Contexts {
  uint32_t cpus = ~uint32_t{0};  // one bit for each CPU
  bool timers = true, ipis = true, devices = true;

  bool has(uint8_t vector, const GuestTraits& guest) const {
    if (vector == guest.timer_vector) return timers;
    return vector >= guest.first_ipi ? ipis : devices;
  }
};

struct KernelMachineOptions {
  unsigned flows = 2;                          // flow i runs on CPU i
  std::vector<std::vector<uint8_t>> programs;  // flow i gets programs[i] from SLALOM_PROGRAM
  bool has_check = false;                      // the guest reports SLALOM_CHECKED after the test
  uint64_t check_limit = 1'000'000'000;        // instructions that the check may take
  std::vector<PlanPart> parts;                 // of the agent's plan, the check last; empty if unknown
  // Returns what is wrong with the flows' results, or "".
  std::function<std::string(const std::vector<std::vector<uint8_t>>&)> judge;
  // Returns how many objects of each allocation site remain allocated after serial orders; nullptr if
  // unknown. The machine emits them at the end of an execution, as Alloc events with state 2.
  std::function<const std::map<Place, uint64_t>*()> serial_leftovers;
  GuestTraits guest;          // the defaults if nothing is known of it
  MakeGuestModel make_model;  // the source of lock and allocation events; nullptr: none
  Contexts contexts;
  Scope scope;                        // empty: the whole kernel
  std::vector<CodeRange> no_choices;  // code in which communication makes no choice points; sorted
  // Code in which communication with interrupts of the same CPU makes choice points (see communication.h).
  CodeRange interruptible;
  // How often a CPU's timer may fire before it is due. Time advances to the timer then.
  unsigned early_timers = 2;
};

class KernelMachine final : public Machine,
                            private Snapshots,
                            private OptionSource,
                            private TapSink,
                            private GuestSink,
                            private Hypercalls {
 public:
  // `machine` must stand just before the flows start.
  KernelMachine(Booted machine, KernelMachineOptions options, std::shared_ptr<const Names> names);
  ~KernelMachine() override;

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  Position position() const override { return Position{state_.steps}; }
  std::vector<Option> blocked() const override;
  uint64_t state_hash() const override;
  EndFacts ending() const override;
  Foresight* foresight() override { return nullptr; }
  bool hashes_cheaply() const override { return false; }
  Snapshots* snapshots() override { return this; }
  const Names& names() const override { return *names_; }

  static constexpr uint64_t kMostNoteBytes = uint64_t{16} << 20;  // of SLALOM_NOTE, in one execution

  // One whole execution without control: the CPUs take turns as they do by themselves, and interrupts arrive
  // when they are due. CPU `first` begins, and its first turn lasts `instructions`.
  struct FreeRun {
    static constexpr uint32_t kTurn = 20'000;  // the usual length of a turn
    unsigned first = 0;
    uint32_t instructions = 1;
  };
  Outcome run_freely(const FreeRun& how, uint64_t max_steps, EventSink& sink);

  const std::vector<std::vector<uint8_t>>& results() const { return state_.results; }  // by flow
  std::array<uint64_t, Liveness::kReasons> liveness_counts() const;
  uint64_t instructions() const;
  Pc& pc() { return *machine_.pc; }
  const GuestTraits& guest() const { return options_.guest; }
  // Records every leg of the next executions into *course; nullptr stops recording.
  void record_into(Course* course) { course_ = course; }
  // Hands the PC to a caller that replays an execution: hypercalls get the same answers as before, and no
  // events are emitted. `natural`: answer as during the check.
  void answer_hypercalls_only(bool natural) {
    sink_ = nullptr;
    natural_ = natural;
  }
  Pc::Checkpoint begin() const { return begin_; }
  uint64_t begin_executed() const { return begin_executed_; }
  // Selects the guest events that the machine emits, if it knows the guest. Call it between executions. It
  // does not change the executions themselves.
  struct Recognised {
    bool locks = false, memory = false;
    bool operator==(const Recognised&) const = default;
  };
  void recognise(Recognised what);
  // false: run without early timers, contexts, scope and check, as SerialOrders does.
  void set_explores(bool explores) { explores_ = explores; }

  // The message for a check that ended with this status.
  static std::string check_failed(int64_t status) {
    return fmt::format("the check failed with status {}", status);
  }

  static AgentId cpu_agent(unsigned cpu) { return AgentId::initial(cpu); }
  // `nested`: the number of running contexts of the same interrupt that it has interrupted.
  static AgentId interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested = 0);

 private:
  struct Interrupt {  // the context of an interrupt that runs on a CPU
    AgentId agent;
    uint64_t return_rip = 0, return_rsp = 0;
  };
  // An event, or a batch of calls and returns, that waits for the next access of its agent. The order of what
  // is emitted must not depend on whether a CPU stopped before or after such an event was noticed.
  struct DeferredEvent {
    Event event;
    std::string text;
    // If not empty, emitted instead of the event, which then only has agent and step.
    std::vector<Access> calls;
    uint64_t thread = 0;  // the thread of the calls
  };
  struct CpuState {
    std::vector<DeferredEvent> deferred;  // not yet emitted
    std::vector<Interrupt> interrupts;    // the innermost last
    bool parked = false;                  // at SLALOM_DONE, and not interrupted since
    bool done = false;                    // its flow is done
    std::optional<uint8_t> offered;       // a pending interrupt for which a choice point was made
    unsigned early_timers = 0;            // timers that have fired early
    bool inside = false;                  // the CPU executes code of the scope
    bool entered = false;                 // its flow has just entered the kernel
    uint64_t flow_stack = 0;              // base of the kernel stack of its flow
    uint64_t flow_sleeps = 0;  // stack pointer of the flow when its thread was switched out; 0 if it was not
    uint64_t in_a_row = 0;     // instructions since another CPU ran
    Liveness liveness;
  };
  // All state except that of the Pc, for checkpoints.
  struct State {
    std::vector<CpuState> cpus;
    unsigned current = 0;
    bool running = false;  // some context has run
    ChoiceKind kind = ChoiceKind::Start;
    uint64_t steps = 0;
    uint64_t digest = 1;     // of all accesses so far, in their order
    AgentId last;            // the agent that ran last
    uint64_t chosen_at = 0;  // operations of the running CPU when it was chosen
    uint32_t arity = 0;
    uint64_t progress = 0;  // virtual time when a flow last entered or left the kernel
    uint64_t revivals = 0;  // how often all CPUs seemed to wait for each other
    struct HeldLock {
      uint64_t lock = 0;
      AgentId by;  // a CPU's agent
      bool operator==(const HeldLock&) const = default;
    };
    std::vector<HeldLock> locks;  // in the order in which they were taken
    bool dying = false;           // the kernel has begun to report its death
    uint64_t dying_since = 0;
    bool traced = false;    // the report includes the call trace
    bool reported = false;  // the report is complete
    std::string line;       // the unfinished line of the console
    unsigned speaker = 0;   // the CPU that wrote to the console last
    std::vector<std::vector<uint8_t>> results;
    std::optional<std::string> failure;  // from SLALOM_FAIL
    uint64_t failed_part = 0;  // the part of the plan that failed; 0: a program reported the failure itself
    std::optional<int64_t> checked;
    uint64_t note_bytes = 0;  // total size of the SLALOM_NOTE texts of this execution
  };

  // Snapshots
  Id take() override;
  Stop restore(Id id) override;
  void drop(Id id) override;
  // OptionSource
  std::span<const Option> options() const override;
  // TapSink
  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override;
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override;
  // GuestSink
  void on_guest_event(const Cpu& cpu, const GuestEvent& event) override;
  void on_guest_accesses(const Cpu&, std::span<const Access>, uint64_t, const GuestTask&) override {}
  // Hypercalls
  bool on_hypercall(Cpu& cpu) override;

  // How often, in the CPU's own instructions, a CPU is examined (kExamine), and how often the machine checks
  // for the end of the execution (kSlice).
  static constexpr uint64_t kExamine = 1'024, kSlice = 16 * kExamine;
  // Instructions that a kernel may still execute after it has begun to report its death.
  static constexpr uint64_t kLastWords = 3'000'000;
  static constexpr uint64_t kAllPlaces = ~uint64_t{0} >> 1;  // more than a run can pass

  void begin_anew(EventSink& sink);
  Outcome deadlock() const;
  bool waits_for_ever() const;                 // nothing will happen any more
  bool sleeps_for_a_time(unsigned cpu) const;  // the flow of that CPU waits for a timer
  PcStop run_naturally(const std::function<bool()>& goes_on);
  Stop last_words();  // lets a kernel that reports its death finish the report
  Stop fail();        // ends the execution with the failure that SLALOM_FAIL reported
  Outcome triple_fault() const;
  LimitReached limit_reached(LimitReached::Limit limit = LimitReached::Limit::Steps) const;
  bool notes_too_much() const { return state_.note_bytes > kMostNoteBytes; }
  void note_part(uint64_t part, std::string_view end);
  bool stops() const { return inputs_.stop && inputs_.stop(); }
  Stop run(uint32_t lease);
  std::optional<Stop> after(PcStop why);
  Stop choice(ChoiceKind kind);
  Stop choice(ChoiceKind kind, AgentId current);
  Stop choice_point();
  Stop conclude();  // no context can run
  Stop finish(Outcome outcome);
  Stop end_of_test();
  bool enabled(unsigned cpu) const;
  std::vector<uint8_t> vectors(unsigned cpu) const;  // of interrupts that could be delivered now
  // A timer interrupt that may arrive before it is due.
  std::optional<uint8_t> early_timer(unsigned cpu) const;
  // The context that runs on the CPU.
  AgentId agent(unsigned cpu) const {
    const std::vector<Interrupt>& nested = state_.cpus[cpu].interrupts;
    return nested.empty() ? cpu_agent(cpu) : nested.back().agent;
  }
  AgentId arriving_agent(unsigned cpu, uint8_t vector) const;  // the agent that this interrupt would become
  uint64_t ops(unsigned cpu) const;
  uint64_t next_stop(unsigned cpu) const;
  bool next_stop_is(unsigned cpu) const;  // the schedule stops the CPU here
  bool can_run(unsigned cpu) const;       // without an interrupt
  // An interrupt that the search does not decide about.
  std::optional<uint8_t> automatic_interrupt(unsigned cpu) const;
  bool scoped() const { return explores_ && !options_.scope.empty(); }
  void update_scope(unsigned cpu);
  void enter_interrupt(unsigned cpu, uint8_t vector, AgentId as);
  void leave_interrupts(unsigned cpu, bool all);
  struct LockWait {
    uint64_t lock = 0;
    Place caller;  // the place that called the lock function
  };
  std::optional<LockWait> waits_for_lock(unsigned cpu) const;
  std::optional<unsigned> releases_lock(uint64_t lock) const;
  bool implements_waiting(Place place) const;  // the function that the place is in
  Place waits_at(unsigned cpu) const;          // where the flow of that CPU waits
  void apply_filter();
  void watch_for_writes();
  // Collects the memory operations that the other contexts would do next, so that `cpu` stops before it
  // conflicts with one. Returns false if there are too many.
  bool collect_pending_accesses(unsigned cpu);
  void note_lock(unsigned cpu, const Event& event);
  void emit_deferred(unsigned cpu);
  void read_console();
  void console_line(const std::string& line);
  // `step` counts the instructions of all CPUs since the machine was made.
  void emit(uint64_t step, unsigned cpu, OpKind op, uint64_t pc, ObjectId object = {}, int64_t value = 0,
            std::string_view text = {});

  bool leave_note(Cpu& cpu, const std::string& text);
  void note(Course::Leg::Kind kind, unsigned cpu, uint64_t value) {
    if (course_ != nullptr) course_->add({kind, cpu, value});
  }

  Booted machine_;
  Course* course_ = nullptr;
  KernelMachineOptions options_;
  std::shared_ptr<const Names> names_;
  Tap tap_;
  std::optional<Recognised> recognised_;
  std::unique_ptr<GuestModel> model_;  // nullptr if the guest is unknown
  Pc::Checkpoint begin_ = 0;
  uint64_t begin_executed_ = 0;
  std::vector<uint64_t> begin_retired_;
  Inputs inputs_;
  bool places_set_ = false;
  EventSink* sink_ = nullptr;
  State state_;
  Communication communication_;
  Journal journal_{communication_};
  mutable Feedback feedback_;
  bool open_ = false;                 // stands at a choice point
  uint32_t unasked_ = 0;              // choice points that were passed since the last decision
  PendingAccesses pending_accesses_;  // what other contexts would do next, at the last decision
  bool stops_at_conflicts_ = false;   // the running CPU stops before it conflicts with these
  bool explores_ = true;
  bool natural_ = false;  // the check runs, without decisions
  mutable std::vector<Option> options_found_;
  mutable NextOperations next_operations_;
  mutable bool options_known_ = false;
  struct Saved;
  std::vector<std::unique_ptr<Saved>> saved_;
};

}  // namespace slalom::vm
