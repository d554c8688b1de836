// Crew: executes one round of tasks on all workers, and hands the results back in the order of the tasks.
//
// The calling thread is worker 0. It first asks for all tasks, which the others begin to execute at once;
// then it takes in what is ready, in order, and executes, too, when nothing is. So what a strategy does with
// results costs the other workers nothing, but walkers are made and asked while the strategy's begin() and
// end() run (see explore/strategy.h). Who executes what, and when, may depend on time, and shows nowhere but
// in steps_run. Between two rounds idle workers stay awake for a moment, since the next round of a small
// target is due within microseconds. Not for deciding what is executed: that is the explorer's.
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

#include "explore/explorer.h"
#include "explore/happenings.h"

namespace slalom {

class Crew {
 public:
  using Next = std::function<std::optional<Task>()>;
  // Called in the order of the tasks. The last argument is how a second run differed from the first, if there
  // was one and it did.
  using TakeIn = std::function<void(const Task&, const Execution&, const std::optional<Divergence>&)>;
  struct Round {
    size_t tasks = 0;
    size_t taken_in = 0;
  };

  Crew(const Strategy& strategy, const ExploreOptions& options, std::vector<Worker> workers);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void set_policy(const ChoicePolicy& policy);  // between rounds

  // A round of up to `room` tasks: as many as there are next. All are taken in unless `expired` became true,
  // which is asked before each execution and must stay true then. Next and TakeIn are called in the calling
  // thread.
  Round run(size_t room, const Next& next, const std::function<bool()>& expired, const TakeIn& take_in);

 private:
  enum class State : uint8_t { Pending, Done, Skipped };
  struct Slot {  // slots are used again, so that the memory of executions is
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
  void listen(size_t worker);
  bool is_cut_short(const Execution& execution) const;
  void execute_own(size_t task);
  void settle(Range own);
  void end_threads();

  const Strategy& strategy_;
  const ExploreOptions::Verify verify_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::unique_ptr<Happenings[][2]> runs_;  // of each worker: what happened in the two that are compared
  std::chrono::nanoseconds pace_{0};       // of the calling thread's executions, lately

  // Of the current round. Whoever has claimed a task may use its slot until that is no longer Pending.
  std::deque<Slot> slots_;
  const std::function<bool()>* expired_ = nullptr;
  std::atomic<uint64_t> unclaimed_{0};  // a Range of slots: its begin in the upper half

  std::atomic<uint32_t> published_{0};  // how often there was something new: what sleeping workers wait for
  std::atomic<bool> quit_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;  // the first one; guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace slalom
