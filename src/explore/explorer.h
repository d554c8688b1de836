// Explorer: owns the only loop. It takes tasks from a strategy in rounds, has them executed by workers, and
// gives the results back in order.
//
// A round's size and content depend on the strategy and on counts alone, never on the number of workers or on
// time, so findings and counts are the same on any number of workers. Between rounds nothing is outstanding:
// that is where a search is saved.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "explore/runner.h"
#include "explore/strategy.h"

namespace slalom {

// Everything one worker needs, its own copy of each.
struct Worker {
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Observer> observer;  // may be null
};
using WorkerFactory = std::function<Result<Worker>()>;

struct ExploreOptions {
  Inputs inputs;
  uint64_t schedules = 0;  // executions to make, in all; 0: no limit
  double seconds = 0;      // 0: no limit
  double reserve = 0;      // of the seconds: not used once a failure was found, which others have work with
  unsigned workers = 1;
  uint32_t checkpoint_every = 8;
  uint32_t insist = 0;  // how often in a row an agent may yield in vain, once at each place: see Fairness
  enum class Verify : uint8_t { No, RunTwice } verify = Verify::No;  // run every execution twice and compare
  // May a strategy that cannot change where it switches while it searches begin anew to do so?
  enum class Restart : uint8_t { No, AtNewRaces } restart = Restart::No;
  enum class Until : uint8_t { Done, FirstFailure, FirstFailureOrRace } until = Until::Done;
};

// A verdict met during the search, with the first execution that showed it.
struct Found {
  Verdict verdict;
  Schedule schedule;
  uint64_t execution = 0;
  uint64_t occurrences = 0;
};

struct ExploreResult {
  uint64_t tasks = 0;       // all of the following together
  uint64_t executions = 0;  // complete ones
  uint64_t blocked = 0;     // abandoned: sleep sets, caching
  uint64_t truncated = 0;   // cut off by the step limit
  uint64_t diverged = 0;    // could not be replayed to where they should have started
  uint64_t failed = 0;      // ended by a ToolError
  uint64_t broken = 0;      // of the complete ones: those that a failure ended
  std::array<uint64_t, Abandoned::kReasons> abandoned{};  // of `blocked`, by Abandoned::Because
  std::array<uint64_t, LimitReached::kLimits> limits{};   // of `truncated`, by LimitReached::Limit
  uint64_t guessed = 0;  // of all: the machine only guessed that an agent waits (Feedback::guessed)
  uint64_t steps = 0;
  uint64_t steps_run = 0;  // less than steps where checkpoints saved work; depends on the number of workers
  uint64_t choice_points = 0;
  uint64_t classes = 0;              // distinct happens-before classes among the complete executions
  std::vector<Place> learned;        // choice points beyond those of the policy it began with; sorted
  std::vector<Place> atomics;        // atomic operations that were made, if Inputs::looks; sorted
  std::vector<Found> found;          // by title
  std::vector<std::string> trouble;  // ToolErrors and divergences, each kind once
  Coverage coverage;                 // in the strategy's view: what may be claimed is for campaign/claims.h
  enum class End : uint8_t {
    SpaceExplored,
    ScheduleLimit,
    TimeLimit,
    Interrupted,
    FirstFailure,
    Failed
  } end = End::SpaceExplored;
};

class Explorer {
 public:
  Explorer(Strategy& strategy, WorkerFactory factory, ExploreOptions options);

  // Called in task order, in the thread that called run().
  std::function<void(const Task&, const Execution&)> on_execution;
  // Called between rounds; returning false ends the search as interrupted.
  std::function<bool(const ExploreResult&)> on_round;
  // Asked all the time, by all workers: true ends the search as interrupted, soon: in the middle of a round,
  // and of executions that take long. Must stay true then.
  std::function<bool()> stop;
  // Called once if the search stops between two rounds: the last time at which save() is allowed.
  std::function<void()> on_pause;

  Result<ExploreResult> run();
  const ExploreResult& result() const { return result_; }

  // Between rounds only (from on_round and on_pause), or before run().
  void save(ByteWriter& out) const;
  bool load(ByteReader& in);

 private:
  ChoicePolicy policy() const;
  bool restarts() const { return options_.restart != ExploreOptions::Restart::No && strategy_.restarts(); }
  void learn(const Feedback& feedback);
  bool has_failure() const;
  void learn(const Verdict& race);
  void learn_places(const std::vector<Place>& places);
  void absorb(const Task& task, const Execution& execution, const std::optional<Divergence>& second_run);

  Strategy& strategy_;
  WorkerFactory factory_;
  ExploreOptions options_;
  ExploreResult result_;
  FlatMap<uint8_t> classes_;
  bool learned_more_ = false;  // in this round
};

}  // namespace slalom
