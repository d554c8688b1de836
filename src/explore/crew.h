// Crew: executes one round of tasks on all workers, and returns the results in the order of the tasks.
//
// The calling thread is worker 0. It first asks for all tasks, which the other workers begin to execute at
// once. Then it takes in the finished results, in order, and executes tasks itself while none is ready. The
// strategy's work on results thus delays no other worker. As a consequence, workers create and call walkers
// while the strategy's begin() and end() run (see explore/strategy.h). Timing may decide which worker
// executes a task and when; of all results, only steps_run depends on it. Between two rounds, idle workers
// stay awake for a moment, because the next round of a small target follows within microseconds. Not for
// deciding which tasks to execute: the explorer does that.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "explore/event_sequence.h"
#include "explore/explorer.h"

namespace slalom {

class Crew {
 public:
  using Next = std::function<std::optional<Task>()>;
  // Called in the order of the tasks. The last argument says how a second run differed from the first; empty
  // if there was no second run or no difference.
  using TakeIn = std::function<void(const Task&, const Execution&, const std::optional<Divergence>&)>;
  struct Round {
    size_t tasks = 0;
    size_t taken_in = 0;
  };

  Crew(const Strategy& strategy, const ExploreOptions& options, std::vector<Worker> workers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void set_policy(const ChoicePolicy& policy);  // call it between rounds only

  // Executes up to `room` tasks, until `next` returns none. Takes all of them in unless `expired` becomes
  // true. Workers ask `expired` before each execution; once true, it must stay true. Calls `next` and
  // `take_in` in the calling thread.
  Round run(size_t room, const Next& next, const std::function<bool()>& expired, const TakeIn& take_in);

 private:
  enum class State : uint8_t { Pending, Done, Skipped };
  // Slots are reused, which also reuses the memory of executions.
  struct Slot {
    Task task;
    Execution execution;
    std::optional<Divergence> second_run;
    std::atomic<State> state = State::Pending;
  };
  struct Range {
    uint32_t begin = 0, end = 0;
    bool empty() const { return begin == end; }
  };

  Round begin_round(size_t room, const Next& next, Range& own);
  void publish(size_t end);
  void work(size_t worker);
  bool wait_for_work();
  Range claim();
  void run_alone(Round& round, const TakeIn& take_in);
  void execute(size_t worker, size_t task);
  void record_events(size_t worker);
  bool is_cut_short(const Execution& execution) const;
  void execute_own(size_t task);
  void finish_round(Range own);
  void end_threads();

  const Strategy& strategy_;
  const ExploreOptions::Verify verify_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::unique_ptr<EventSequence[][2]> runs_;  // for each worker: the events of the two runs to compare
  std::chrono::nanoseconds pace_{0};          // recent duration of an execution in the calling thread

  // State of the current round. The worker that claimed a task owns the task's slot while the slot is
  // Pending.
  std::deque<Slot> slots_;
  const std::function<bool()>* expired_ = nullptr;
  std::atomic<uint64_t> unclaimed_{0};  // a Range of slots, with `begin` in the upper half

  // Counts announcements of new work; sleeping workers wait for a change.
  std::atomic<uint32_t> published_{0};
  std::atomic<bool> quit_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;  // the first one; guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace slalom
