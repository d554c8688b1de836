// Explorer: owns the only search loop. It takes tasks from a strategy in rounds, lets workers execute them,
// and returns the results to the strategy in order.
//
// A round's size and content depend on the strategy and on counts, never on the number of workers or on time.
// Findings and counts are therefore the same for any number of workers. Between rounds no task is
// outstanding: a search can only be saved there.
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

// Everything that one worker needs. Workers share none of it.
struct Worker {
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Observer> observer;  // may be nullptr
  std::unique_ptr<Learner> learner;    // may be nullptr
};
using WorkerFactory = std::function<Result<Worker>()>;

struct ExploreOptions {
  Inputs inputs;
  uint64_t schedules = 0;  // executions to make in all; 0 means unlimited
  double seconds = 0;      // 0 means unlimited
  // Of `seconds`: time to leave unused once a failure was found, so that the caller can process the failure.
  double reserve = 0;
  unsigned workers = 1;
  uint32_t checkpoint_every = 8;
  uint32_t insist = 0;  // times in a row that an agent may yield in vain, once per place (see Fairness)
  // Run every execution twice and compare the two.
  enum class Verify : uint8_t { No, RunTwice } verify = Verify::No;
  // Whether a strategy that cannot change its choice points during a search may start again with new ones.
  enum class Restart : uint8_t { No, AtNewRaces } restart = Restart::No;
  enum class Until : uint8_t { Done, FirstFailure, FirstFailureOrRace } until = Until::Done;
};

// A verdict of the search, with the first execution that showed it.
struct Found {
  Verdict verdict;
  Schedule schedule;
  uint64_t execution = 0;
  uint64_t occurrences = 0;
};

struct ExploreResult {
  uint64_t tasks = 0;                                     // sum of the following kinds
  uint64_t executions = 0;                                // complete ones
  uint64_t blocked = 0;                                   // abandoned: sleep sets, caching
  uint64_t truncated = 0;                                 // cut off by the step limit
  uint64_t diverged = 0;                                  // could not be replayed to their starting point
  uint64_t failed = 0;                                    // ended by a ToolError
  uint64_t broken = 0;                                    // complete executions that a failure ended
  std::array<uint64_t, Abandoned::kReasons> abandoned{};  // of `blocked`, by Abandoned::Reason
  std::array<uint64_t, LimitReached::kLimits> limits{};   // of `truncated`, by LimitReached::Limit
  // Executions in which the machine only guessed that an agent waits (Knowledge::guessed).
  uint64_t guessed = 0;
  uint64_t positions = 0;
  uint64_t positions_run =
      0;  // less than `positions` if checkpoints saved work; depends on the number of workers
  uint64_t choice_points = 0;
  uint64_t classes = 0;              // distinct happens-before classes among the complete executions
  std::vector<Place> learned;        // choice points beyond those of the initial policy; sorted
  std::vector<Found> found;          // ordered by title
  std::vector<std::string> trouble;  // ToolErrors and divergences, each kind once
  Coverage coverage;  // the strategy's own view; campaign/claims.h decides what slalom may claim
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
  // Called between rounds. Returning false ends the search as interrupted.
  std::function<bool(const ExploreResult&)> on_round;
  // All workers call this all the time. Returning true ends the search as interrupted, soon: in the middle of
  // a round or of a long execution. Once true, it must stay true.
  std::function<bool()> stop;
  // Called once if the search stops between two rounds. save() is not allowed later.
  std::function<void()> on_pause;

  Result<ExploreResult> run();
  const ExploreResult& result() const { return result_; }

  // Call these only between rounds (from on_round and on_pause), or before run().
  void save(ByteWriter& out) const;
  bool load(ByteReader& in);

 private:
  ChoicePolicy policy() const;
  bool restarts() const { return options_.restart != ExploreOptions::Restart::No && strategy_.restarts(); }
  bool has_failure() const;
  void learn(const Knowledge& knowledge);
  void learn_places(const std::vector<Place>& places);
  void absorb(const Task& task, const Execution& execution, const std::optional<Divergence>& second_run);

  Strategy& strategy_;
  WorkerFactory factory_;
  ExploreOptions options_;
  ExploreResult result_;
  FlatMap<uint8_t> classes_;
  bool learned_more_ = false;  // in the current round
};

}  // namespace slalom
