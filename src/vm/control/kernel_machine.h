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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"
#include "vm/boot/boot.h"
#include "vm/control/course.h"
#include "vm/control/flow_waits.h"
#include "vm/control/guest_events.h"
#include "vm/control/kernel_console.h"
#include "vm/control/kernel_contexts.h"
#include "vm/control/kernel_events.h"
#include "vm/control/kernel_options.h"
#include "vm/control/test_protocol.h"

namespace slalom::vm {

class KernelMachine final : public Machine {
 public:
  // `machine` must stand just before the flows start.
  KernelMachine(Booted machine, KernelMachineOptions options, std::shared_ptr<const Names> names);
  ~KernelMachine() override;

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  Position position() const override { return Position{state_.steps}; }
  std::vector<Option> blocked() const override { return contexts_.blocked(); }
  uint64_t state_hash() const override;
  EndFacts ending() const override;
  bool hashes_cheaply() const override { return false; }
  Snapshots* snapshots() override { return &checkpoints_; }
  const Names& names() const override { return *names_; }

  static constexpr uint64_t kMostNoteBytes = TestProtocol::kMostNoteBytes;

  static constexpr uint32_t kFreeTurn = 20'000;  // instructions: a usual turn without control

  const std::vector<std::vector<uint8_t>>& results() const { return protocol_.results(); }  // by flow
  std::array<uint64_t, Liveness::kReasons> liveness_counts() const;
  uint64_t instructions() const;
  Pc& pc() { return *machine_.pc; }
  const GuestTraits& guest() const { return options_.guest; }
  // Records every leg of the next executions into *course; nullptr stops recording.
  void record_into(Course* course) { course_.record_into(course); }
  // Hands the PC to a caller that replays an execution: hypercalls get the same answers as before, and no
  // events are emitted. `natural`: answer as during the check.
  void answer_hypercalls_only(bool natural) {
    events_.drop_all();
    events_.set_natural(natural);
  }
  Pc::Checkpoint begin() const { return begin_; }
  uint64_t begin_executed() const { return begin_executed_; }
  // Selects the guest events that the machine emits, if it knows the guest. It always emits accesses. Call it
  // between executions. It does not change the executions themselves.
  void recognise(Facilities what) { guest_.recognise(what); }

  // The message for a check that ended with this status.
  static std::string check_failed(int64_t status) {
    return fmt::format("the check failed with status {}", status);
  }

  static AgentId cpu_agent(unsigned cpu) { return KernelContexts::cpu_agent(cpu); }
  static AgentId interrupt_agent(unsigned cpu, uint8_t vector, unsigned nested = 0) {
    return KernelContexts::interrupt_agent(cpu, vector, nested);
  }

 private:
  // Checkpoints of the machine, each with the state of its PC and of all its parts.
  class Checkpoints final : public Snapshots {
   public:
    explicit Checkpoints(KernelMachine& machine);
    ~Checkpoints();
    Id take() override;
    Stop restore(Id id) override;
    void drop(Id id) override;

   private:
    struct Saved;
    KernelMachine& m_;
    std::vector<std::unique_ptr<Saved>> saved_;
  };

  // The machine's own state in an execution. Its parts have their own.
  struct State {
    bool running = false;  // some context has run
    uint64_t steps = 0;
    AgentId last;            // the agent that ran last
    uint64_t chosen_at = 0;  // operations of the running CPU when it was chosen
    uint64_t revivals = 0;   // how often all CPUs seemed to wait for each other
    uint64_t dying_since = 0;
  };

  // How often, in the CPU's own instructions, a CPU is examined (kExamine), and how often the machine checks
  // for the end of the execution (kSlice).
  static constexpr uint64_t kExamine = 1'024, kSlice = 16 * kExamine;
  // Instructions that a kernel may still execute after it has begun to report its death.
  static constexpr uint64_t kLastWords = 3'000'000;
  // Record accesses of ring 0 except those to its own stacks: only these can be shared by flows. Record
  // calls, so that every access has its callers.
  static TapFilter filter(const GuestTraits& guest) {
    return {.rings = 1, .own_stack = false, .calls = true, .stacks = guest.stacks};
  }

  Stop run_freely(Decision first);
  Stop run(uint32_t keep);
  std::optional<Stop> after(PcStop why);
  bool is_of_policy(PcStop why) const;  // the CPU has stopped before an access that the policy names
  bool reaches_access(unsigned cpu, uint32_t& keep);
  Stop choice(ChoiceKind kind);
  Stop choice(ChoiceKind kind, AgentId current);
  Stop choice_point();
  uint64_t ops(unsigned cpu) const;
  uint64_t next_stop(unsigned cpu) const;
  bool next_stop_is(unsigned cpu) const;  // the schedule stops the CPU here
  // Collects the memory operations that the other contexts would do next, so that `cpu` stops before it
  // conflicts with one. Returns false if there are too many.
  bool collect_pending_accesses(unsigned cpu);

  // How executions end (kernel_ends.cc).
  Stop conclude();    // no context can run
  Stop last_words();  // lets a kernel that reports its death finish the report
  Stop fail();        // ends the execution with the failure that SLALOM_FAIL reported
  Stop end_of_test();
  Stop finish(Outcome outcome);
  PcStop run_naturally(const std::function<bool()>& goes_on);
  void apply_filter();
  bool has_died();
  Outcome triple_fault() const;
  LimitReached limit_reached(LimitReached::Limit limit = LimitReached::Limit::Steps) const;
  void note_part(uint64_t part, std::string_view end);
  bool stops() const { return inputs_.stop && inputs_.stop(); }

  Booted machine_;
  KernelMachineOptions options_;
  std::shared_ptr<const Names> names_;
  CourseRecorder course_;
  Tap tap_{events_, filter(options_.guest)};
  KernelContexts contexts_{*machine_.pc, tap_, options_, course_};
  KernelEvents events_{*machine_.pc, contexts_, options_};
  GuestEvents guest_{tap_, events_, options_};
  KernelConsole console_{*machine_.pc, events_, options_.guest};
  TestProtocol protocol_{*machine_.pc, tap_, contexts_, events_, options_};
  FlowWaits waits_{{*machine_.pc, tap_, contexts_, events_, guest_, options_, *names_}};
  Checkpoints checkpoints_{*this};
  Pc::Checkpoint begin_ = 0;
  const uint64_t begin_executed_ = machine_.pc->executed();
  std::vector<uint64_t> begin_retired_;
  Inputs inputs_;
  bool places_set_ = false;
  std::vector<AccessWatch> watched_;  // the accesses of the policy
  State state_;
  mutable Knowledge knowledge_;
  bool open_ = false;                 // stands at a choice point
  uint32_t passed_ = 0;               // choice points since the last decision
  PendingAccesses pending_accesses_;  // what other contexts would do next, at the last decision
  bool stops_at_conflicts_ = false;   // the running CPU stops before it conflicts with these
};

}  // namespace slalom::vm
