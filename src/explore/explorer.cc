#include "explore/explorer.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "explore/crew.h"
#include "explore/save.h"

namespace slalom {
namespace {

// Returns the number of tasks of the next round. Short executions get large rounds, because each round has a
// fixed cost and ends with workers that wait for the last task. A round stays small compared with the
// executions so far, because it cannot use what it teaches itself, and its results must fit into memory
// easily. The result depends only on counts that are saved with the search and are the same for any number of
// workers.
size_t round_size(const ExploreResult& so_far) {
  constexpr uint64_t kSmallest = 64, kLargest = 1024, kSteps = 1 << 16;
  if (so_far.tasks == 0) return kSmallest;
  const uint64_t by_length = kSteps / std::max<uint64_t>(1, so_far.positions / so_far.tasks);
  return std::clamp(std::min(by_length, so_far.tasks / 4), kSmallest, kLargest);
}

// If the first kHopeless executions all fail to start, assume that every one will.
constexpr uint64_t kHopeless = 8;

bool only_failed(const ExploreResult& so_far) {
  return so_far.tasks > 0 && so_far.failed == so_far.tasks;
}

std::string logged_outcome(const Outcome& outcome) {
  return std::visit(
      Overloaded{
          [](const Exited&) { return std::string("exited"); },
          [](const Deadlocked& dead) { return fmt::format("deadlocked, {} waiting", dead.waiting.size()); },
          [](const Faulted& fault) {
            return fmt::format("faulted in {}: {}", fault.agent.path(), fault.what);
          },
          [](const LimitReached& limit) { return fmt::format("reached a limit at step {}", limit.steps); },
          [](const Abandoned& abandoned) { return "abandoned: " + abandoned.why; },
          [](const ToolError& error) { return "could not be made: " + error.message; }},
      outcome);
}

void log_execution(const Task& task, const Execution& execution,
                   const std::optional<Divergence>& second_run) {
  DEBUG_LOG(
      Explore,
      "execution {}: {}; {} choice points ({} in the prefix), {} switches, {} values, {} steps, attempt {}, "
      "class {:#018x}",
      task.index, logged_outcome(execution.outcome), execution.choice_points, task.prefix.size(),
      execution.schedule.switches.size(), execution.schedule.data.size(), execution.steps, execution.attempts,
      execution.class_hash);
  for (const Switch& s : execution.schedule.switches)
    TRACE_LOG(Explore, "execution {}: switch from {} after {} operations to {}", task.index, s.from.path(),
              s.from_ops, s.to.path());
  for (const std::optional<Divergence>* divergence : {&execution.divergence, &second_run})
    if (*divergence)
      DEBUG_LOG(Explore, "execution {}: diverged at choice {}, step {}: {}{}{}", task.index,
                (*divergence)->choice, (*divergence)->position.raw, (*divergence)->what,
                (*divergence)->detail.empty() ? "" : ": ", (*divergence)->detail);
  for (const Verdict& verdict : execution.verdicts)
    DEBUG_LOG(Explore, "execution {}: {}", task.index, verdict.title);
}

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
  using End = ExploreResult::End;
  constexpr End kGoesOn = End::SpaceExplored;
  std::atomic<End> early{kGoesOn};
  std::atomic<double> seconds{options_.seconds - (has_failure() ? options_.reserve : 0)};
  const std::function<bool()> expired = [&] {
    End known = kGoesOn;
    if (stop && stop())
      early.compare_exchange_strong(known, End::Interrupted);
    else if (options_.seconds > 0 && Clock::now() - start >= std::chrono::duration<double>(seconds.load()))
      early.compare_exchange_strong(known, End::TimeLimit);
    return early.load(std::memory_order_relaxed) != kGoesOn;
  };
  ExploreOptions options = options_;
  options.inputs.stop = expired;
  Crew crew(strategy_, options, std::move(workers));
  if (strategy_.adapts() || restarts()) crew.set_policy(policy());  // a loaded search has learned places

  const auto pause = [this] {
    if (on_pause) on_pause();
  };
  const Crew::Next next = [this] { return strategy_.begin(); };
  const Crew::TakeIn take_in = [&](const Task& task, const Execution& execution,
                                   const std::optional<Divergence>& second_run) {
    absorb(task, execution, second_run);
    if (only_failed(result_) && result_.tasks >= kHopeless) early = End::Failed;
    if (execution.verdicts.empty() || options_.reserve == 0 || !has_failure()) return;
    seconds = options_.seconds - options_.reserve;
  };
  for (;;) {
    using Until = ExploreOptions::Until;
    const auto ends_search = [this](const Found& found) {
      const Severity severity = found.verdict.severity;
      return severity == Severity::Failure ||
             (severity == Severity::Race && options_.until == Until::FirstFailureOrRace);
    };
    if (options_.until != Until::Done &&
        std::any_of(result_.found.begin(), result_.found.end(), ends_search)) {
      result_.end = End::FirstFailure;
      pause();
      break;
    }
    if (on_round && !on_round(result_)) {
      result_.end = End::Interrupted;
      pause();
      break;
    }
    if (std::exchange(learned_more_, false)) {
      crew.set_policy(policy());
      if (!strategy_.adapts()) strategy_.restart();
    }
    size_t room = round_size(result_);
    strategy_.next_round(room);
    if (options_.schedules > 0)
      room = std::min<uint64_t>(room, options_.schedules - std::min(options_.schedules, result_.tasks));
    if (room == 0) {
      result_.end = End::ScheduleLimit;
      pause();
      break;
    }
    const Crew::Round round = crew.run(room, next, expired, take_in);
    if (round.tasks == 0) {
      result_.end = End::SpaceExplored;
      pause();
      break;
    }
    if (round.taken_in < round.tasks) {
      result_.end = early;
      break;
    }
    if (only_failed(result_)) break;
  }
  if (only_failed(result_)) result_.end = End::Failed;
  result_.coverage = strategy_.coverage();
  return result_;
}

ChoicePolicy Explorer::policy() const {
  ChoicePolicy policy = options_.inputs.policy;
  merge_places(policy.places, result_.learned);
  return policy;
}

bool Explorer::has_failure() const {
  return std::ranges::any_of(result_.found,
                             [](const Found& found) { return found.verdict.severity == Severity::Failure; });
}

void Explorer::learn(const Knowledge& knowledge) {
  if (strategy_.adapts()) {
    learn_places(knowledge.places);
  } else if (!knowledge.places.empty()) {
    // Only those of skipped atomic operations. Locks protect the others, unless a race report shows
    // otherwise.
    std::vector<Place> skipped;
    std::ranges::set_intersection(options_.inputs.policy.skipped_atomics, knowledge.places,
                                  std::back_inserter(skipped));
    learn_places(skipped);
  }
  if (knowledge.racing.empty() || !restarts()) return;
  std::vector<Place> racing;
  std::ranges::set_difference(knowledge.racing, options_.inputs.policy.places, std::back_inserter(racing));
  learn_places(racing);
}

// A search that can neither adapt nor restart reports these places at the end.
void Explorer::learn_places(const std::vector<Place>& places) {
  if (merge_places(result_.learned, places))
    learned_more_ = learned_more_ || strategy_.adapts() || restarts();
}

void Explorer::absorb(const Task& task, const Execution& execution,
                      const std::optional<Divergence>& second_run) {
  if (is_logged(LogFolder::Explore, LogLevel::Debug)) [[unlikely]]
    log_execution(task, execution, second_run);
  ++result_.tasks;
  result_.positions += execution.positions;
  result_.positions_run += execution.positions_run;
  result_.choice_points += execution.choice_points;
  result_.guessed += execution.knowledge.guessed;
  learn(execution.knowledge);
  // Reports trouble once if it differs only in its place.
  const auto trouble = [&](const std::string& what, const std::string& where) {
    const auto known = [&](const std::string& other) { return other.starts_with(what); };
    if (result_.trouble.size() < 20 && std::none_of(result_.trouble.begin(), result_.trouble.end(), known))
      result_.trouble.push_back(what + where);
  };
  for (const std::optional<Divergence>* divergence : {&execution.divergence, &second_run})
    if (*divergence)
      trouble("not deterministic: " + (*divergence)->what,
              fmt::format(" (first in execution {}, choice {}, step {}){}{}", task.index,
                          (*divergence)->choice, (*divergence)->position.raw,
                          (*divergence)->detail.empty() ? "" : ": ", (*divergence)->detail));
  const auto complete = [&] {
    ++result_.executions;
    uint8_t& seen = classes_[execution.class_hash];
    result_.classes += seen == 0;
    seen = 1;
  };
  if (execution.divergence || second_run)
    ++result_.diverged;
  else
    std::visit(Overloaded{[&](const Exited&) { complete(); }, [&](const Deadlocked&) { complete(); },
                          [&](const Faulted&) { complete(); },
                          [&](const LimitReached& reached) {
                            ++result_.truncated;
                            ++result_.limits[static_cast<size_t>(reached.limit)];
                          },
                          [&](const Abandoned& given_up) {
                            ++result_.blocked;
                            ++result_.abandoned[static_cast<size_t>(given_up.reason)];
                          },
                          [&](const ToolError& error) {
                            ++result_.failed;
                            trouble(error.message, "");
                          }},
               execution.outcome);
  bool broken = false;
  for (const Verdict& verdict : execution.verdicts) {
    broken = broken || verdict.severity == Severity::Failure;
    auto at = std::lower_bound(
        result_.found.begin(), result_.found.end(), verdict.title,
        [](const Found& found, const std::string& title) { return found.verdict.title < title; });
    if (at == result_.found.end() || at->verdict.title != verdict.title)
      at = result_.found.insert(at, Found{verdict, execution.schedule, task.index, 0});
    ++at->occurrences;
  }
  const bool early = std::holds_alternative<Faulted>(execution.outcome) ||
                     std::holds_alternative<Deadlocked>(execution.outcome);
  result_.broken += broken && early;
  strategy_.end(task, execution);
  if (on_execution) on_execution(task, execution);
}

}  // namespace slalom
