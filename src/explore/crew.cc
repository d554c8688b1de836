#include "explore/crew.h"

#include <algorithm>
#include <utility>

#include "explore/replay.h"

namespace slalom {
namespace {

// Consecutive tasks share prefixes, so a worker claims several at a time if there are many.
constexpr size_t kLargestChunk = 4;
constexpr size_t kChunksPerWorker = 4;
constexpr size_t kPublished = 8;  // tasks per announcement while the round is being made

// One worker executes a round of less total time sooner than several workers. Executions must cross from one
// core to another, and a worker repeats what another worker's checkpoints would have saved.
constexpr std::chrono::nanoseconds kWorthSharing = std::chrono::microseconds(250);

// How often a waiting thread checks again before it sleeps: a few times the duration of a wake-up.
constexpr int kPatience = 4000;

// Leaves the core to its other hardware thread for a moment. Yielding to another process would cost a time
// slice of that process.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

constexpr uint64_t packed(uint64_t begin, uint64_t end) {
  return begin << 32 | end;
}

template <typename Condition>
bool soon(const Condition& condition) {
  for (int i = 0; i < kPatience; ++i) {
    if (condition()) return true;
    relax();
  }
  return condition();
}

std::string how_they_differ(const EventSequence& first, const EventSequence& second, const Names& names) {
  const std::string where = EventSequence::difference(first, second, names);
  if (!where.empty()) return where;
  if (first.full())
    return fmt::format("the first {} operations and accesses are the same", EventSequence::kMaxItems);
  return "every operation was the same, but not what was left at the end: what it wrote, or how it ended";
}

// `runs[0]` holds the events of the first run; `runs[1]` is for those of the second.
std::optional<Divergence> compare_second_run(Runner& runner, const Execution& first, EventSequence (&runs)[2],
                                             const Names& names) {
  if (first.divergence || std::holds_alternative<Abandoned>(first.outcome)) return std::nullopt;
  ScheduleWalker again(first.schedule);
  runs[1].clear();
  runner.set_extra_sink(&runs[1]);
  runner.repeat_errors(&first.schedule, true);
  const Execution& second = runner.run(Task{}, again);
  runner.repeat_errors(nullptr, false);
  if (std::holds_alternative<Abandoned>(second.outcome)) return std::nullopt;  // the search has ended
  const bool alike = !first.schedule.errors || !second.schedule.errors ||
                     fail_alike(*first.schedule.errors, *second.schedule.errors);
  if (second.state_hash == first.state_hash && alike && second.schedule.switches == first.schedule.switches &&
      second.schedule.data == first.schedule.data && second.schedule.digest == first.schedule.digest)
    return std::nullopt;
  size_t at = 0;
  const auto& a = first.schedule.switches;
  const auto& b = second.schedule.switches;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  std::vector<std::string> calls;
  if (!alike) calls = differences(*first.schedule.errors, *second.schedule.errors, names);
  const auto detail = [&] {
    if (!calls.empty()) return calls.front();
    return first.attempts == 1 ? how_they_differ(runs[0], runs[1], names) : std::string();
  };
  return Divergence{at, Position{std::min(first.positions, second.positions)},
                    "a second run of the same schedule went another way" +
                        (again.divergence() ? ": " + *again.divergence() : ""),
                    detail()};
}

}  // namespace

Crew::Crew(const Strategy& strategy, const ExploreOptions& options, std::vector<Worker> workers)
    : strategy_(strategy), verify_(options.verify), workers_(std::move(workers)) {
  RunnerOptions runner;
  runner.inputs = options.inputs;
  runner.recording = strategy.recording();
  runner.fair = strategy.fair();
  runner.insist = options.insist;
  runner.hash_states = verify_ == ExploreOptions::Verify::RunTwice;
  // A second run that starts at a checkpoint of the first would not show the differences before it.
  // Checkpoints are useless too if no task repeats a prefix.
  const bool goes_back = verify_ != ExploreOptions::Verify::RunTwice && !strategy.adapts();
  runner.checkpoint_every = goes_back ? options.checkpoint_every : 0;
  runs_ = std::make_unique<EventSequence[][2]>(workers_.size());
  for (Worker& worker : workers_)
    runners_.push_back(
        std::make_unique<Runner>(*worker.machine, worker.observer.get(), runner, worker.learner.get()));
  try {
    for (size_t i = 1; i < workers_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (...) {  // the system has too little memory, or too many threads
    end_threads();
    throw;
  }
}

void Crew::set_policy(const ChoicePolicy& policy) {
  for (const std::unique_ptr<Runner>& runner : runners_) runner->set_policy(policy);
}

Crew::~Crew() {
  end_threads();
}

void Crew::end_threads() {
  quit_ = true;
  ++published_;
  published_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// The calling thread claims the first task, or all of them if they are too few to share.
Crew::Round Crew::begin_round(size_t room, const Next& next, Range& own) {
  while (slots_.size() < room) slots_.emplace_back();
  unclaimed_ = packed(1, 1);
  Round round;
  size_t published = 1;
  const auto share = [&](size_t at_least) {
    if (round.tasks < published + at_least || round.tasks * pace_ < kWorthSharing) return;
    publish(published = round.tasks);
  };
  while (round.tasks < room) {
    std::optional<Task> task = next();
    if (!task) break;
    slots_[round.tasks].task = std::move(*task);
    slots_[round.tasks++].state.store(State::Pending, std::memory_order_relaxed);
    if (!threads_.empty()) share(kPublished);
  }
  if (!threads_.empty()) share(1);
  own = {0, static_cast<uint32_t>(published > 1 ? 1 : round.tasks)};
  return round;
}

void Crew::publish(size_t end) {
  const uint64_t before = unclaimed_.load(std::memory_order_relaxed);
  unclaimed_ += end - (before & UINT32_MAX);
  // Workers that went to sleep before have not seen the new tasks.
  ++published_;
  published_.notify_all();
}

Crew::Round Crew::run(size_t room, const Next& next, const std::function<bool()>& expired,
                      const TakeIn& take_in) {
  expired_ = &expired;
  Round round;
  Range own;
  try {
    round = begin_round(room, next, own);
    if (threads_.empty()) {
      run_alone(round, take_in);
      return round;
    }
    while (round.taken_in < round.tasks) {
      Slot& slot = slots_[round.taken_in];
      const State state = slot.state.load(std::memory_order_acquire);
      if (state == State::Skipped) break;
      if (state == State::Done) {
        take_in(slot.task, slot.execution, slot.second_run);
        ++round.taken_in;
        continue;
      }
      if (own.empty()) own = claim();
      if (!own.empty())
        execute_own(own.begin++);
      else if (!soon([&] { return slot.state.load(std::memory_order_acquire) != State::Pending; }))
        slot.state.wait(State::Pending, std::memory_order_acquire);
    }
  } catch (...) {
    finish_round(own);
    throw;
  }
  finish_round(own);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return round;
}

// Executes the tasks one after the other, without copying each.
void Crew::run_alone(Round& round, const TakeIn& take_in) {
  Runner& runner = *runners_.front();
  const bool twice = verify_ == ExploreOptions::Verify::RunTwice;
  for (; round.taken_in < round.tasks && !(*expired_)(); ++round.taken_in) {
    const Task& task = slots_[round.taken_in].task;
    if (twice) record_events(0);
    const Execution& execution = runner.run(task, *strategy_.walker(task));
    if (is_cut_short(execution)) break;
    if (!twice) {
      take_in(task, execution, std::nullopt);
      continue;
    }
    const Execution first = execution;  // a second run overwrites `execution`
    take_in(task, first, compare_second_run(runner, first, runs_[0], workers_[0].machine->names()));
  }
}

// Ends the round: no worker starts another task, and running tasks finish. `own` holds the tasks that the
// calling thread claimed and will not execute.
void Crew::finish_round(Range own) {
  for (; !own.empty(); ++own.begin) slots_[own.begin].state = State::Skipped;
  const uint64_t claimed = unclaimed_.exchange(packed(1, 1)) >> 32;
  for (size_t i = 1; i < claimed; ++i) slots_[i].state.wait(State::Pending, std::memory_order_acquire);
}

void Crew::work(size_t worker) {
  while (wait_for_work()) {
    Range range = claim();
    for (; !range.empty(); ++range.begin) execute(worker, range.begin);
  }
}

// Returns false if the thread must end.
bool Crew::wait_for_work() {
  const auto is_work = [this] {
    const uint64_t range = unclaimed_.load(std::memory_order_acquire);
    return range >> 32 != (range & UINT32_MAX) || quit_;
  };
  for (;;) {
    const uint32_t seen = published_;
    if (soon(is_work)) return !quit_;
    published_.wait(seen);
  }
}

Crew::Range Crew::claim() {
  uint64_t range = unclaimed_.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t begin = range >> 32;
    const uint64_t end = range & UINT32_MAX;
    if (begin == end) return {};
    const uint64_t chunk =
        std::clamp<uint64_t>((end - begin) / (kChunksPerWorker * runners_.size()), 1, kLargestChunk);
    const uint64_t next = std::min(begin + chunk, end);
    if (unclaimed_.compare_exchange_weak(range, packed(next, end), std::memory_order_acq_rel))
      return {static_cast<uint32_t>(begin), static_cast<uint32_t>(next)};
  }
}

// Records the events of the first of two runs.
void Crew::record_events(size_t worker) {
  runs_[worker][0].clear();
  runners_[worker]->set_extra_sink(&runs_[worker][0]);
}

// Returns whether the end of the search cut the execution short. Executions that their walkers abandon after
// the end count too.
bool Crew::is_cut_short(const Execution& execution) const {
  return std::holds_alternative<Abandoned>(execution.outcome) && (*expired_)();
}

void Crew::execute_own(size_t task) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  execute(0, task);
  pace_ = (7 * pace_ + (Clock::now() - start)) / 8;
}

void Crew::execute(size_t worker, size_t task) {
  Slot& slot = slots_[task];
  State state = State::Skipped;
  try {
    if (!(*expired_)()) {
      Runner& runner = *runners_[worker];
      const bool twice = verify_ == ExploreOptions::Verify::RunTwice;
      if (twice) record_events(worker);
      slot.execution = runner.run(slot.task, *strategy_.walker(slot.task));
      if (!is_cut_short(slot.execution)) {
        slot.second_run = twice ? compare_second_run(runner, slot.execution, runs_[worker],
                                                     workers_[worker].machine->names())
                                : std::nullopt;
        state = State::Done;
      }
    }
  } catch (...) {
    std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  slot.state.store(state, std::memory_order_release);
  slot.state.notify_one();
}

}  // namespace slalom
