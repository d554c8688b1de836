// Runner: executes one task on one machine.
//
// It repeats the task's prefix (from the deepest checkpoint that agrees with it, where the machine has
// checkpoints), then asks the walker at every choice point, and writes down what the strategy needs. A
// checkpoint holds machine, observer, fairness and history state, so an execution that starts at one is equal
// to one that was run from the beginning.
//
// Imperfect replay (CHESS 4.2): a prefix that meets another choice point than the one it was recorded at is
// retried from the beginning; if it keeps diverging the execution runs to its end and reports where it first
// differed.
#pragma once

#include <memory>
#include <vector>

#include "explore/fairness.h"
#include "explore/recorder.h"
#include "explore/strategy.h"
#include "machine/machine.h"

namespace slalom {

struct RunnerOptions {
  Inputs inputs;
  Recording recording = Recording::Schedule;
  bool fair = true;
  uint32_t insist = 0;            // Fairness::turns
  uint32_t checkpoint_every = 8;  // choice points; 0: never
  uint32_t attempts = 3;          // at a diverging prefix
  bool hash_states = false;       // also where that is expensive
};

class Runner {
 public:
  // `observer` may be null. Both must outlive the runner.
  Runner(Machine& machine, Observer* observer, RunnerOptions options);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // The result is valid until the next run.
  const Execution& run(const Task& task, Walker& walker);

  // Between executions: where they can be switched from now on.
  void set_policy(const ChoicePolicy& policy);

  // Between executions: what calls that fail give from now on, as `schedule` has it; null: what they give.
  // `same`: it is also the schedule of the next executions.
  void repeat_errors(const Schedule* schedule, bool same);

  // A further sink for all accesses and events. Executions then run from the beginning, so that it sees
  // everything.
  void also_tell(EventSink* sink) { extra_ = sink; }

 private:
  class Fan;
  struct Checkpoint {
    Snapshots::Id snapshot = 0;
    size_t choices = 0, options = 0, touches = 0, switches = 0, data = 0;
    uint64_t choice_points = 0;
    std::unique_ptr<Observer::State> observer;
    Recorder::History history;
    Fairness fairness;
    std::vector<std::pair<AgentId, uint64_t>> agent_ops;
  };

  struct Attempt {
    const Task& task;
    Walker& walker;
    bool last;
    bool fair;
    bool diverged = false;
  };

  bool attempt(const Task& task, Walker& walker, bool last_attempt);
  std::optional<Decision> decide(const ChoicePoint& point, Attempt& now);
  std::optional<Stop> from_checkpoint(const Task& task);
  Stop from_start();
  void drop_checkpoints(size_t keep);
  void take_checkpoint();
  void thin_out_checkpoints();
  void note(const ChoicePoint& point, const Pick& pick);
  void foresee(const Task& task, const Walker& walker, size_t position);
  bool records_choices() const { return options_.recording != Recording::Schedule; }

  Machine& machine_;
  Observer* observer_;
  EventSink* extra_ = nullptr;
  RunnerOptions options_;
  Snapshots* snapshots_;
  Foresight* foresight_;
  std::unique_ptr<Fan> fan_;
  Recorder recorder_;
  Fairness fairness_;
  Execution log_;  // of the current or last execution: checkpoints refer to its beginnings
  std::vector<Checkpoint> checkpoints_;
  std::vector<Option> allowed_;    // where fairness leaves some out
  std::vector<AgentId> foreseen_;  // of the prefix,
  Forecast forecast_;              // and after it
};

}  // namespace slalom
