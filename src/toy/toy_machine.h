// ToyMachine: runs small concurrent programs (toy_program.h) in microseconds. Tests prove strategies on it,
// with exact counts of executions. Semantics: docs/toy-language.md.
//
// Every transition is one visible operation of one agent and the invisible instructions after it. The pending
// operation of every agent is thus known at every choice point. Not thread-safe: each worker has its own
// machine, and they share the program.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "machine/machine.h"
#include "toy/toy_core.h"

namespace slalom {

class ToyMachine final : public Machine, private Snapshots, private OptionSource {
 public:
  enum class SnapshotMode : uint8_t { On, Off };
  explicit ToyMachine(std::shared_ptr<const ToyProgram> program, SnapshotMode mode = SnapshotMode::On);
  explicit ToyMachine(ToyProgram program, SnapshotMode mode = SnapshotMode::On);
  ToyMachine(const ToyMachine&) = delete;
  ToyMachine& operator=(const ToyMachine&) = delete;

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  std::vector<Option> blocked() const override;
  Position position() const override { return Position{core_.state().steps}; }
  uint64_t state_hash() const override { return core_.state().hash(*program_); }
  EndFacts ending() const override { return {.steps = Step{position().raw}, .positions = position()}; }
  bool hashes_cheaply() const override { return true; }
  Snapshots* snapshots() override { return mode_ == SnapshotMode::On ? this : nullptr; }
  const Names& names() const override { return core_.names(); }

  const ToyState& state() const { return core_.state(); }
  PendingOp pending(uint32_t agent) const { return core_.pending(agent); }  // of any agent, enabled or not

 private:
  struct Slot {
    ToyState state;
    bool used = false;
  };

  Id take() override;
  Stop restore(Id id) override;
  void drop(Id id) override;
  std::span<const Option> options() const override;

  Stop run(uint32_t self, std::optional<uint32_t> answer, uint32_t keep);
  Stop stop(ChoiceKind kind);
  Stop choice_point();
  Stop finish(Outcome outcome);
  Stop conclude();  // called when no agent can run
  LimitReached limit_reached() const;
  bool is_watched(uint32_t self) const;  // the policy names the access that the agent makes next
  uint64_t next_stop(const ToyAgent& agent) const;

  std::shared_ptr<const ToyProgram> program_;
  const SnapshotMode mode_;
  ToyCore core_;
  ChoicePolicy policy_;
  std::vector<bool> is_choice_;  // by instruction: whether the policy makes it a choice point
  bool running_ = false;         // the machine stands at a choice point
  uint32_t passed_ = 0;          // choice points since the last decision
  std::vector<Slot> slots_;
  std::vector<Id> free_slots_;
  mutable std::vector<Option> options_;
  mutable bool options_known_ = false;
};

}  // namespace slalom
