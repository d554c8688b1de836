// KernelMachine: a kernel under test behind the Machine interface. Its agents are contexts: each CPU, and
// each interrupt that waits for one or runs on one (SKI, sections 3.4 and 5.2).
//
// An execution starts where all flows of a test are about to begin, and ends when all of them are done, when
// the kernel has died, or when nothing can go on. In between CPUs run one at a time, as decided; an interrupt
// comes only by a decision, and only when the CPU's flag and the priorities let it in. A timer that is due
// becomes pending; when nothing else can run, time passes up to the next one.
//
// An agent's operations are the instructions its CPU has retired since the start. Steps are choice points
// that the policy allows: instructions of communication, or, as long as none are known, all that share
// memory.
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
#include "vm/control/guest_plan.h"
#include "vm/control/journal.h"
#include "vm/control/liveness.h"
#include "vm/control/next_operation.h"
#include "vm/control/scope.h"
#include "vm/guests/linux/guest_model.h"

namespace slalom::vm {

// Which contexts a search decides about. Other CPUs run where none of these can; other interrupts come as
// soon as their CPU runs and lets them in, as a part of what it does.
struct Contexts {
  uint32_t cpus = ~uint32_t{0};  // a bit each
  bool timers = true, ipis = true, devices = true;

  static constexpr uint8_t kTimer = 0xec, kFirstIpi = 0xf0;  // Linux's vectors
  bool has(uint8_t vector) const { return vector == kTimer ? timers : vector >= kFirstIpi ? ipis : devices; }
};

struct KernelMachineOptions {
  unsigned flows = 2;                          // flow i runs on CPU i
  std::vector<std::vector<uint8_t>> programs;  // what flows ask for with SLALOM_PROGRAM
  bool has_check = false;                      // the guest says SLALOM_CHECKED after the test,
  uint64_t check_limit = 1'000'000'000;        // within so many instructions
  std::vector<PlanPart> parts;  // of the agent's plan, the check last; empty: nobody knows them
  // Says what is wrong with the flows' results, if something is.
  std::function<std::string(const std::vector<std::vector<uint8_t>>&)> judge;
  // How many objects of each place of allocation stay when calls run one after the other; null: nobody knows.
  // Told at the end, as Alloc events with state 2.
  std::function<const std::map<Place, uint64_t>*()> stays;
  std::shared_ptr<const GuestKernel> guest;  // whose locks and allocations are told; null: none
  Contexts contexts;
  Scope scope;                        // empty: everything
  std::vector<CodeRange> no_choices;  // where communication makes no choice points; sorted
  CodeRange
      interruptible;  // where that with interrupts on the same CPU makes some (vm/control/communication.h)
  unsigned early_timers = 2;  // times that a CPU's timer may come before it is due, time passing meanwhile
};

class KernelMachine final : public Machine,
                            private Snapshots,
                            private OptionSource,
                            private TapSink,
                            private GuestSink,
                            private Hypercalls {
 public:
  // `machine` stands where the flows are about to start.
  KernelMachine(Booted machine, KernelMachineOptions options, std::shared_ptr<const Names> names);
  ~KernelMachine() override;

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  slalom::Step step() const override { return slalom::Step{state_.steps}; }
  std::vector<Option> blocked() const override;
  uint64_t state_hash() const override;
  uint64_t digest() const override { return state_.digest; }
  bool hashes_cheaply() const override { return false; }
  Snapshots* snapshots() override { return this; }
  const Names& names() const override { return *names_; }

  static constexpr uint64_t kMostNoteBytes = uint64_t{16} << 20;  // of SLALOM_NOTE, in one execution

  // A whole run without control: CPUs take turns as the machine does by itself, interrupts come when they do.
  // The given CPU is first, for so many instructions of its turn.
  struct FreeRun {
    static constexpr uint32_t kTurn = 20'000;  // one of the usual length
    unsigned first = 0;
    uint32_t instructions = 1;
  };
  Outcome run_freely(const FreeRun& how, uint64_t max_steps, EventSink& sink);

  const Feedback* feedback() const override;  // also where the search gives the execution up
  const std::vector<std::vector<uint8_t>>& results() const { return state_.results; }  // by flow
  std::array<uint64_t, Liveness::kReasons> liveness_counts() const;
  uint64_t instructions() const;
  Pc& pc() { return *machine_.pc; }
  // From the next start() on: null: not any more.
  void write_down(Course* course) { course_ = course; }
  // Whoever drives the PC from now on, as an execution went: hypercalls are answered as then, and nobody is
  // told anything. `natural`: as while the check runs.
  void only_answer(bool natural) {
    sink_ = nullptr;
    natural_ = natural;
  }
  Pc::Checkpoint begin() const { return begin_; }
  uint64_t begin_executed() const { return begin_executed_; }
  // Between executions: which of the guest's doings are told, if it is known. Executions are the same.
  struct Recognised {
    bool locks = false, memory = false;
    bool operator==(const Recognised&) const = default;
  };
  void recognise(Recognised what);
  // Without early timers, contexts, scope and check, until true is said again.
  void set_explores(bool explores) { explores_ = explores; }

  // What is told of a check that ended with this status.
  static std::string check_failed(int64_t status) {
    return fmt::format("the check failed with status {}", status);
  }

  static AgentId cpu_agent(unsigned cpu) { return AgentId::initial(cpu); }
  // `nested`: how many contexts of the same interrupt it has interrupted.
  static AgentId interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested = 0);

 private:
  struct Interrupt {  // a context on a CPU
    AgentId agent;
    uint64_t return_rip = 0, return_rsp = 0;
  };
  // Calls, and what the guest model says, are passed on with the next access of their agent, so that their
  // order does not depend on whether a CPU stopped before or after they were noticed.
  struct Told {
    Event event;
    std::string text;
    std::vector<Access> calls;  // instead of the event, which only has agent and step
    uint64_t thread = 0;        // of the calls
  };
  struct CpuState {
    std::vector<Told> told;             // and not yet passed on
    std::vector<Interrupt> interrupts;  // the innermost last
    bool parked = false;                // at SLALOM_DONE, and not interrupted since
    bool done = false;                  // its flow is
    std::optional<uint8_t> offered;     // an interrupt that waits since a choice point was made for it
    unsigned early_timers = 0;          // that have come
    bool inside = false;                // of the scope
    bool entered = false;               // its flow has just called the kernel
    uint64_t flow_stack = 0;            // where its flow's kernel stack lies,
    uint64_t flow_sleeps = 0;           // and how far it was used when it was left; 0: it was not
    uint64_t in_a_row = 0;              // instructions since another CPU ran
    Liveness liveness;
  };
  // Everything but the Pc, for checkpoints.
  struct State {
    std::vector<CpuState> cpus;
    unsigned current = 0;
    bool running = false;  // somebody has run
    ChoiceKind kind = ChoiceKind::Start;
    uint64_t steps = 0;
    uint64_t digest = 1;     // of all accesses so far, in their order
    AgentId last;            // who ran last
    uint64_t chosen_at = 0;  // its operations when it was chosen
    uint32_t arity = 0;
    uint64_t progress = 0;  // virtual time when a flow last entered or left the kernel
    uint64_t revivals = 0;  // times that all CPUs seemed to wait for each other
    struct HeldLock {
      uint64_t lock = 0;
      AgentId by;  // a CPU's
      bool operator==(const HeldLock&) const = default;
    };
    std::vector<HeldLock> locks;  // in the order in which they were taken
    bool dying = false;           // the kernel reports its end, since this instruction
    uint64_t dying_since = 0;
    bool traced = false;    // with its call trace,
    bool reported = false;  // or completely
    std::string line;       // of the console, so far
    unsigned speaker = 0;   // the CPU that wrote there last
    std::vector<std::vector<uint8_t>> results;
    std::optional<std::string> failure;  // SLALOM_FAIL,
    uint64_t failed_part = 0;            // of what; 0: of a program, which said so itself
    std::optional<int64_t> checked;
    uint64_t note_bytes = 0;  // that SLALOM_NOTE has left in this execution
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

  // How often a CPU is looked at, and how often the end of an execution is; at fixed counts of its own
  // instructions.
  static constexpr uint64_t kLook = 1'024, kSlice = 16 * kLook;
  static constexpr uint64_t kLastWords =
      3'000'000;  // what a kernel may still do after it has reported its end
  static constexpr uint64_t kAllPlaces = ~uint64_t{0} >> 1;  // more than can be passed

  void begin_anew(EventSink& sink);
  Outcome deadlock() const;                    // as it stands
  bool waits_for_ever() const;                 // so long that nothing will happen any more
  bool sleeps_for_a_time(unsigned cpu) const;  // the flow that belongs to that CPU
  PcStop run_naturally(const std::function<bool()>& goes_on);
  Stop last_words();  // the kernel has begun to report its end, and does nothing else any more
  Stop fail();        // as SLALOM_FAIL said
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
  Stop conclude();  // nobody can run
  Stop finish(Outcome outcome);
  Stop end_of_test();
  bool enabled(unsigned cpu) const;
  std::vector<uint8_t> vectors(unsigned cpu) const;        // of interrupts that could be delivered now
  std::optional<uint8_t> early_timer(unsigned cpu) const;  // one that may come before it is due
  AgentId agent(unsigned cpu) const {
    const std::vector<Interrupt>& nested = state_.cpus[cpu].interrupts;
    return nested.empty() ? cpu_agent(cpu) : nested.back().agent;
  }                                                      // whose turn it is on that CPU
  AgentId arriving(unsigned cpu, uint8_t vector) const;  // who it would be, if that interrupt came
  uint64_t ops(unsigned cpu) const;
  uint64_t next_stop(unsigned cpu) const;
  bool next_stop_is(unsigned cpu) const;                // here
  bool can_run(unsigned cpu) const;                     // by itself
  std::optional<uint8_t> unlisted(unsigned cpu) const;  // an interrupt that comes by itself
  bool scoped() const { return explores_ && !options_.scope.empty(); }
  void look_at_scope(unsigned cpu);
  void enter_interrupt(unsigned cpu, uint8_t vector, AgentId as);
  void leave_interrupts(unsigned cpu, bool all);
  struct LockWait {
    uint64_t lock = 0;
    Place caller;  // who wants it
  };
  std::optional<LockWait> waits_for_lock(unsigned cpu) const;
  std::optional<unsigned> releases_lock(uint64_t lock) const;
  Place waits_at(unsigned cpu) const;  // where the flow waits that belongs to that CPU
  void look_again();
  void watch_for_writes();
  bool heed_others(unsigned cpu);  // while that CPU runs; false: there are too many
  void note_lock(unsigned cpu, const Event& event);
  void pass_on(unsigned cpu);
  void read_console();
  void console_line(const std::string& line);
  // `step` counts instructions of all CPUs since the machine was made.
  void tell(uint64_t step, unsigned cpu, OpKind op, uint64_t pc, ObjectId object = {}, int64_t value = 0,
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
  std::unique_ptr<GuestModel> model_;  // null: nothing is known of the guest
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
  bool open_ = false;          // stands at a choice point
  uint32_t unasked_ = 0;       // choice points that were passed since the last decision
  Others others_;              // what other contexts were about to do then,
  bool heeds_others_ = false;  // and whether the CPU that runs stops before it meets them
  bool explores_ = true;
  bool natural_ = false;  // the check runs, and nothing is decided
  mutable std::vector<Option> options_found_;
  mutable NextOperations next_operations_;
  mutable bool options_known_ = false;
  struct Saved;
  std::vector<std::unique_ptr<Saved>> saved_;
};

}  // namespace slalom::vm
