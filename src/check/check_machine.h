// CheckMachine: the body of a slalom::check as a Machine. The body's threads are the agents. An execution is
// a call of the body inside this process.
//
// No snapshots. An execution that the search gives up runs on to its end without reporting anything, so that
// the body releases its locks and memory. An execution that cannot end (a deadlock, a crash) is abandoned,
// and the locks that it holds are opened. The body itself is responsible for any other state that outlives an
// execution.
#pragma once

#include <span>
#include <vector>

#include "check/in_process.h"
#include "check/modules.h"
#include "machine/machine.h"

namespace slalom::checking {

class CheckMachine final : public Machine, private OptionSource, private Occupant {
 public:
  CheckMachine(InProcess& process, const Modules& modules) : process_(process), modules_(modules) {}
  ~CheckMachine() override { give_up(); }

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  Position position() const override { return Position{steps_}; }
  std::vector<Option> blocked() const override;
  uint64_t state_hash() const override { return hash_; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return *modules_.names(); }
  EndFacts ending() const override { return {.steps = Step{position().raw}, .positions = position()}; }
  bool hashes_cheaply() const override { return true; }

 private:
  struct KnownAgent {  // what is known of an agent
    AgentId id;
    uint64_t entry = 0;
    // The object and place of its next operation, as real addresses and as the search sees them.
    uint64_t object = 0, pc = 0;
    uint64_t stable_object = 0, stable_pc = 0;
  };

  std::span<const Option> options() const override { return enabled_; }
  preload::Channel& channel() const { return process_.channel(); }
  Stop run();
  void let_run(uint32_t agent);
  void read_target();  // reads the body's records and its current stop
  void read_records();
  void read_event(const preload::Record& record);
  preload::Record* read_accesses(preload::Record* from, const preload::Record* end);
  uint64_t stable(uint64_t object) const;
  void emit_use_of(const void* freed, Step step, AgentId agent, Place pc);
  void note_lock(const preload::Record& record);
  Stop choice_point() const;
  bool is_choice_point();
  Stop finish(Outcome outcome, bool normally);
  void give_up() override;
  void open_locks();
  Outcome conclude();
  Deadlocked deadlock() const;
  std::string_view text_at(uint32_t text) const;
  uint32_t index_of(AgentId id) const;  // kNoAgent if there is none

  InProcess& process_;
  const Modules& modules_;
  Inputs inputs_;
  EventSink* sink_ = nullptr;
  bool at_choice_point_ = false;  // whether the body is stopped at a choice point

  std::vector<KnownAgent> agents_;  // by index; kept between executions
  std::vector<uint32_t> order_;     // indexes in the order of ids
  std::vector<Option> enabled_;     // in the order of ids
  uint64_t steps_ = 0;
  uint64_t hash_ = 0;
  uint32_t keep_ = 0;  // of the last decision's forecast
  std::vector<Access> accesses_ = std::vector<Access>(preload::kMostRecords);  // one batch at a time
  std::vector<uint64_t> held_;  // addresses of held locks in this process
};

}  // namespace slalom::checking
