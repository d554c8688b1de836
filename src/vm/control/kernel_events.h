// KernelEvents: makes the accesses and events of an execution out of what the tap reports of the CPUs, and
// passes them on. It also learns from them what the machine itself needs: contexts whose handlers have
// returned, the flows' stacks, which CPUs make progress, and which memory the contexts share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/sink.h"
#include "vm/control/communication.h"
#include "vm/control/flow_stacks.h"
#include "vm/control/journal.h"
#include "vm/control/kernel_contexts.h"

namespace slalom::vm {

class KernelEvents final : public TapSink {
 public:
  KernelEvents(Pc& pc, KernelContexts& contexts, const KernelMachineOptions& options);

  void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) override;
  void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) override;

  // A new execution. `at_end`: the sink gets everything when the execution has ended.
  void begin(EventSink& sink, bool at_end);
  void drop_all() { sink_ = nullptr; }  // from now on, nothing is passed on
  EventSink& sink() { return *sink_; }
  bool holds_back() const { return sink_ == &journal_; }
  // `natural`: the CPUs take turns by themselves, and only the console and notes are passed on.
  void set_natural(bool natural) { natural_ = natural; }
  bool natural() const { return natural_; }
  void set_model(GuestModel* model) { model_ = model; }  // gets calls and returns; nullptr: none

  // `step` counts the instructions of all CPUs since the machine was made.
  void emit(uint64_t step, unsigned cpu, OpKind op, uint64_t pc, ObjectId object = {}, int64_t value = 0,
            std::string_view text = {});
  // Emits an event of the running context with its next access. Its step counts as that of emit().
  void defer(unsigned cpu, Event event);

  // Notes that a flow made progress now.
  void note_progress() { state_.stacks.progress = pc_.time(); }
  const FlowStacks& stacks() const { return state_.stacks; }
  uint64_t digest() const { return state_.digest; }
  std::vector<Place> points() const { return communication_.points(); }

  // An event, or a batch of calls and returns, that waits for the next access of its agent. The order of what
  // is emitted must not depend on whether a CPU stopped before or after such an event was noticed.
  struct Deferred {
    Event event;
    std::string text;
    // If not empty, emitted instead of the event, which then only has agent and step.
    std::vector<Access> calls;
    uint64_t thread = 0;  // the thread of the calls
  };
  struct State {
    std::vector<std::vector<Deferred>> deferred;  // by CPU
    FlowStacks stacks;
    uint64_t digest = 1;  // of all accesses so far, in their order
  };
  struct Saved {
    State state;
    Communication::State communication;
  };
  Saved save() const;
  void restore(const Saved& saved);

 private:
  void emit_deferred(unsigned cpu);

  Pc& pc_;
  KernelContexts& contexts_;
  const KernelMachineOptions& options_;
  const uint64_t begin_executed_;  // instructions of all CPUs before each execution
  GuestModel* model_ = nullptr;
  EventSink* sink_ = nullptr;
  bool natural_ = false;
  State state_;
  Communication communication_;
  Journal journal_{communication_};
};

}  // namespace slalom::vm
