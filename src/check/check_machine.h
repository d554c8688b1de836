// CheckMachine: the body of a slalom::check as a Machine. Its threads are the agents, an execution is a call
// of the body inside this process.
//
// No snapshots. An execution that the search gives up runs on to its end, unseen, so that what the body has
// locked or allocated is given back; one that cannot end (a deadlock, a crash) is left where it is, and the
// locks that it holds are opened. What else outlives an execution is the body's business.
#pragma once

#include <span>
#include <vector>

#include "check/in_process.h"
#include "check/modules.h"
#include "machine/machine.h"
#include "process/conflicts.h"

namespace slalom::checking {

class CheckMachine final : public Machine, private OptionSource, private Occupant {
 public:
  CheckMachine(InProcess& process, const Modules& modules) : process_(process), modules_(modules) {}
  ~CheckMachine() override { give_up(); }

  Result<void> reset(const Inputs& inputs) override;
  Stop start(EventSink& sink) override;
  Stop resume(Decision decision) override;
  Step step() const override { return Step{steps_}; }
  std::vector<Option> blocked() const override;
  uint64_t state_hash() const override { return hash_; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return *modules_.names(); }
  const Feedback* feedback() const override { return &conflicts_.feedback(); }

 private:
  struct Known {  // of an agent
    AgentId id;
    uint64_t entry = 0;
    // What its next operation is about, here and for the search.
    uint64_t object = 0, pc = 0;
    uint64_t stable_object = 0, stable_pc = 0;
  };

  std::span<const Option> options() const override { return enabled_; }
  preload::Channel& channel() const { return process_.channel(); }
  Stop run();
  void let_run(uint32_t agent);
  void look();  // at what the body has told and where it stands
  void read_records();
  void read_event(const preload::Record& record);
  preload::Record* read_accesses(preload::Record* from, const preload::Record* end);
  uint64_t stable(uint64_t object) const;
  void tell_use_of(const void* freed, Step step, AgentId agent, Place pc);
  void note_lock(const preload::Record& record);
  Stop choice_point() const;
  bool wants();
  Stop finish(Outcome outcome, bool normally);
  void give_up() override;
  void open_locks();
  Outcome conclude();
  Deadlocked deadlock() const;
  std::string_view text_at(uint32_t text) const;
  uint32_t index_of(AgentId id) const;  // kNobody: there is none

  InProcess& process_;
  const Modules& modules_;
  Inputs inputs_;
  EventSink* sink_ = nullptr;
  bool standing_ = false;  // at a choice point

  std::vector<Known> agents_;    // by index; kept from one execution to the next
  std::vector<uint32_t> order_;  // the indexes in the order of ids
  std::vector<Option> enabled_;  // in the order of ids
  uint64_t steps_ = 0;
  uint64_t hash_ = 0;
  std::vector<Access> accesses_ = std::vector<Access>(preload::kMostRecords);  // of one batch at a time
  std::vector<uint64_t> held_;  // locks, where they lie in this process
  Conflicts conflicts_;
};

}  // namespace slalom::checking
