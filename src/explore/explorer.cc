#include "explore/explorer.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "explore/save.h"
#include "explore/strategies/replay.h"

namespace slalom {
namespace {

constexpr size_t kRound = 64;
constexpr size_t kChunk = 4;  // consecutive tasks share prefixes, so a worker takes several at a time

// Runs the tasks of a round on all workers. Worker 0 is the calling thread.
class Crew {
 public:
  Crew(const Strategy& strategy, const ExploreOptions& options, std::vector<Worker> workers)
      : strategy_(strategy), verify_(options.verify), workers_(std::move(workers)) {
    RunnerOptions runner;
    runner.inputs = options.inputs;
    runner.recording = strategy.recording();
    runner.fair = strategy.fair();
    // A second run that starts at a checkpoint of the first would not show what differs before it.
    runner.checkpoint_every = verify_ == ExploreOptions::Verify::RunTwice ? 0 : options.checkpoint_every;
    for (Worker& worker : workers_)
      runners_.push_back(std::make_unique<Runner>(*worker.machine, worker.observer.get(), runner));
    for (size_t i = 1; i < workers_.size(); ++i) threads_.emplace_back([this, i] { work_rounds(i); });
  }
  ~Crew() {
    {
      std::lock_guard lock(mutex_);
      quit_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Executes tasks[i] into executions[i]; `deadline` ends it early: only the first `finished()` are valid
  // then.
  void run(const std::vector<Task>& tasks, std::vector<Execution>& executions,
           const std::function<bool()>& expired) {
    executions.clear();
    executions.resize(tasks.size());
    second_runs_.assign(tasks.size(), std::nullopt);
    done_.assign(tasks.size(), 0);
    tasks_ = &tasks;
    executions_ = &executions;
    expired_ = &expired;
    next_ = 0;
    if (tasks.size() > kChunk && !threads_.empty()) {
      {
        std::lock_guard lock(mutex_);
        ++round_;
        busy_ = threads_.size();
      }
      wake_.notify_all();
      work(0);
      std::unique_lock lock(mutex_);
      idle_.wait(lock, [this] { return busy_ == 0; });
    } else {
      work(0);
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  size_t finished() const {
    return static_cast<size_t>(std::find(done_.begin(), done_.end(), 0) - done_.begin());
  }
  // How the second run of task i differed from the first, if there was one and it did.
  const std::optional<Divergence>& second_run(size_t i) const { return second_runs_[i]; }

 private:
  void work_rounds(size_t worker) {
    uint64_t seen = 0;
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return quit_ || round_ != seen; });
      if (quit_) return;
      seen = round_;
      lock.unlock();
      work(worker);
      lock.lock();
      if (--busy_ == 0) idle_.notify_one();
    }
  }
  void work(size_t worker) {
    try {
      for (;;) {
        const size_t begin = next_.fetch_add(kChunk);
        if (begin >= tasks_->size()) return;
        for (size_t i = begin; i < std::min(begin + kChunk, tasks_->size()); ++i) {
          if ((*expired_)()) return;
          const Task& task = (*tasks_)[i];
          Execution& execution = (*executions_)[i];
          execution = runners_[worker]->run(task, *strategy_.walker(task));
          if (verify_ == ExploreOptions::Verify::RunTwice)
            second_runs_[i] = compare_second_run(*runners_[worker], execution);
          done_[i] = 1;
        }
      }
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  static std::optional<Divergence> compare_second_run(Runner& runner, const Execution& first) {
    if (first.divergence || std::holds_alternative<Abandoned>(first.outcome)) return std::nullopt;
    ScheduleWalker again(first.schedule);
    const Execution second = runner.run(Task{}, again);
    if (second.state_hash == first.state_hash && second.schedule == first.schedule) return std::nullopt;
    size_t at = 0;
    const auto& a = first.schedule.switches;
    const auto& b = second.schedule.switches;
    while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
    return Divergence{at, Step{std::min(first.steps, second.steps)},
                      "a second run of the same schedule went another way" +
                          (again.divergence() ? ": " + *again.divergence() : "")};
  }

  const Strategy& strategy_;
  ExploreOptions::Verify verify_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  uint64_t round_ = 0;
  size_t busy_ = 0;
  bool quit_ = false;
  std::exception_ptr failure_;

  const std::vector<Task>* tasks_ = nullptr;
  std::vector<Execution>* executions_ = nullptr;
  std::vector<std::optional<Divergence>> second_runs_;
  const std::function<bool()>* expired_ = nullptr;
  std::vector<uint8_t> done_;
  std::atomic<size_t> next_{0};
};

}  // namespace

Explorer::Explorer(Strategy& strategy, WorkerFactory factory, ExploreOptions options)
    : strategy_(strategy), factory_(std::move(factory)), options_(std::move(options)) {}

Result<ExploreResult> Explorer::run() {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::vector<Worker> workers;
  for (unsigned i = 0; i < std::max(1u, options_.workers); ++i) {
    TRY_ASSIGN(Worker worker, factory_());
    workers.push_back(std::move(worker));
  }
  Crew crew(strategy_, options_, std::move(workers));
  std::atomic<bool> stopped{false};
  const std::function<bool()> expired = [&] {
    if (options_.seconds > 0 && Clock::now() - start >= std::chrono::duration<double>(options_.seconds))
      stopped = true;
    return stopped.load(std::memory_order_relaxed);
  };

  const auto pause = [this] {
    if (on_pause) on_pause();
  };
  std::vector<Task> tasks;
  std::vector<Execution> executions;
  using End = ExploreResult::End;
  for (;;) {
    if (options_.until == ExploreOptions::Until::FirstFailure &&
        std::any_of(result_.found.begin(), result_.found.end(),
                    [](const Found& found) { return found.verdict.severity == Severity::Failure; })) {
      result_.end = End::FirstFailure;
      pause();
      break;
    }
    if (on_round && !on_round(result_)) {
      result_.end = End::Interrupted;
      pause();
      break;
    }
    size_t room = kRound;
    if (options_.schedules > 0)
      room = std::min<uint64_t>(room, options_.schedules - std::min(options_.schedules, result_.tasks));
    if (room == 0) {
      result_.end = End::ScheduleLimit;
      pause();
      break;
    }
    tasks.clear();
    while (tasks.size() < room) {
      std::optional<Task> task = strategy_.begin();
      if (!task) break;
      tasks.push_back(std::move(*task));
    }
    if (tasks.empty()) {
      result_.end = End::SpaceExplored;
      pause();
      break;
    }
    crew.run(tasks, executions, expired);
    const size_t finished = crew.finished();
    for (size_t i = 0; i < finished; ++i) absorb(tasks[i], executions[i], crew.second_run(i));
    if (finished < tasks.size()) {
      result_.end = End::TimeLimit;
      break;
    }
    if (result_.failed == result_.tasks) {
      result_.end = End::Failed;
      break;
    }
  }
  result_.coverage = strategy_.coverage();
  if (result_.truncated + result_.diverged + result_.failed > 0) result_.coverage.exhausted = false;
  if (result_.diverged + result_.failed > 0)
    result_.coverage.statement += fmt::format("; nothing beyond {} executions that could not be repeated",
                                              result_.diverged + result_.failed);
  return result_;
}

void Explorer::absorb(const Task& task, const Execution& execution,
                      const std::optional<Divergence>& second_run) {
  ++result_.tasks;
  result_.steps += execution.steps;
  result_.steps_run += execution.steps_run;
  result_.choice_points += execution.choice_points;
  // What is the same but for where it happened is told once.
  const auto trouble = [&](const std::string& what, const std::string& where) {
    const auto known = [&](const std::string& other) { return other.starts_with(what); };
    if (result_.trouble.size() < 20 && std::none_of(result_.trouble.begin(), result_.trouble.end(), known))
      result_.trouble.push_back(what + where);
  };
  for (const std::optional<Divergence>& divergence : {execution.divergence, second_run})
    if (divergence)
      trouble("not deterministic: " + divergence->what,
              fmt::format(" (first in execution {}, choice {}, step {})", task.index, divergence->choice,
                          divergence->step.raw));
  const auto complete = [&] {
    ++result_.executions;
    uint8_t& seen = classes_[execution.class_hash];
    result_.classes += seen == 0;
    seen = 1;
  };
  if (execution.divergence || second_run)
    ++result_.diverged;
  else
    std::visit(
        Overloaded{[&](const Exited&) { complete(); }, [&](const Deadlocked&) { complete(); },
                   [&](const Faulted&) { complete(); }, [&](const LimitReached&) { ++result_.truncated; },
                   [&](const Abandoned&) { ++result_.blocked; },
                   [&](const ToolError& error) {
                     ++result_.failed;
                     trouble(error.message, "");
                   }},
        execution.outcome);
  for (const Verdict& verdict : execution.verdicts) {
    auto at = std::lower_bound(
        result_.found.begin(), result_.found.end(), verdict.title,
        [](const Found& found, const std::string& title) { return found.verdict.title < title; });
    if (at == result_.found.end() || at->verdict.title != verdict.title)
      at = result_.found.insert(at, Found{verdict, execution.schedule, task.index, 0});
    ++at->occurrences;
  }
  strategy_.end(task, execution);
  if (on_execution) on_execution(task, execution);
}

}  // namespace slalom
