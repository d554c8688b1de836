// Runner: executes one task on one machine.
//
// The runner repeats the task's prefix, then asks the walker at every choice point, and records what the
// strategy needs. If the machine has checkpoints, the runner starts at the deepest one that agrees with the
// prefix. A checkpoint holds the state of machine, observer, fairness and history, so an execution that
// starts at a checkpoint equals one that ran from the beginning.
//
// Imperfect replay (CHESS 4.2): if a prefix meets another choice point than the recorded one, the runner
// retries it from the beginning. If it keeps diverging, the execution runs to its end, and the runner reports
// the first difference.
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
  uint32_t insist = 0;            // turns of Fairness
  uint32_t checkpoint_every = 8;  // choice points; 0: never
  uint32_t attempts = 3;          // for a diverging prefix
  bool hash_states = false;       // even if the machine does not hash cheaply
};

class Runner {
 public:
  // `observer` and `learner` may be nullptr. All must outlive the runner. A learner's state is in no
  // checkpoint, so with one, executions run from the beginning.
  Runner(Machine& machine, Observer* observer, RunnerOptions options, Learner* learner = nullptr);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // The result is valid until the next run.
  const Execution& run(const Task& task, Walker& walker);

  // Changes the choice points. Call it between executions only.
  void set_policy(const ChoicePolicy& policy);

  // Makes failing calls return the errors of `schedule`; nullptr: calls run for real. `same`: the next
  // executions follow that schedule too. Call it between executions only.
  void repeat_errors(const Schedule* schedule, bool same);

  // Sets a further sink for all accesses and events; nullptr removes it. With such a sink, executions run
  // from the beginning, so that it gets everything.
  void set_extra_sink(EventSink* sink) { extra_ = sink; }

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
  void collect_knowledge(const EndFacts& ending);
  const LaterChoices* later_choices(const Task& task, const Walker& walker, size_t position);
  bool records_choices() const { return options_.recording != Recording::Schedule; }

  Machine& machine_;
  Observer* observer_;
  Learner* learner_;
  EventSink* extra_ = nullptr;
  RunnerOptions options_;
  Snapshots* snapshots_;
  std::unique_ptr<Fan> fan_;
  Recorder recorder_;
  Fairness fairness_;
  Execution log_;  // of the current or last execution; checkpoints refer to prefixes of it
  std::vector<Checkpoint> checkpoints_;
  std::vector<Option> allowed_;          // the fair options, if fairness removes some
  std::vector<AgentId> rest_of_prefix_;  // later_ refers to it
  LaterChoices later_;
};

}  // namespace slalom
