#include "campaign/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "campaign/finisher.h"
#include "campaign/learn_policy.h"
#include "campaign/saved_search.h"
#include "campaign/step_limit.h"
#include "detect/detector_set.h"
#include "explore/replay.h"
#include "explore/strategies/sampling.h"
#include "report/text.h"

namespace slalom {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<ClaimFacts> claim_facts(const Target& target, const Job& job, const CampaignResult& result,
                               bool adapts) {
  TRY_ASSIGN(const bool looks_for_races, selects(job.detectors, "race"));
  ClaimFacts facts{.explored = result.explored, .policy = job.policy, .max_steps = job.max_steps};
  facts.adapts = adapts;
  facts.looks_for_races = looks_for_races;
  facts.learns = target.traits.learns;
  facts.learned_places = result.communication_points;
  facts.communicate = target.words.communicate;
  facts.scope = target.limits.scope;
  if (target.reports.sight) facts.sight = target.reports.sight();
  facts.uncontrolled = result.uncontrolled;
  facts.unpinned_threads = target.limits.unpinned_threads.size();
  facts.not_compared = result.compared.not_compared;
  facts.standing = target.limits.standing;
  facts.most_places = target.traits.most_places;
  facts.more_steps = target.words.more_steps;
  facts.everywhere = target.words.everywhere;
  return facts;
}

// libstdc++ reads and yields 16 times before it sleeps. Other libraries do so some tens of times.
constexpr uint32_t kInsist = 64;

// Becomes true a moment after the user wants to stop, so that the current round may end by itself.
class Patience {
 public:
  explicit Patience(std::function<bool()> stop) : stop_(std::move(stop)) {}
  bool is_over() {
    if (!stop_ || !stop_()) return false;
    Clock::rep never = 0;
    const Clock::rep now = Clock::now().time_since_epoch().count();
    since_.compare_exchange_strong(never, now);
    return Clock::duration(now - since_) >= kMoment;
  }

 private:
  static constexpr Clock::duration kMoment = std::chrono::milliseconds(500);
  std::function<bool()> stop_;
  std::atomic<Clock::rep> since_{0};
};

// Saves the search while it runs. Saving takes a small share of the time, however much there is to save. If
// saving fails, the search goes on.
class Saving {
 public:
  explicit Saving(std::filesystem::path path) : path_(std::move(path)) {}
  bool is_due() const { return Clock::now() >= next_; }
  void save(const Job& job, const Explorer& explorer, const std::vector<UncontrolledAct>& uncontrolled) {
    const auto begun = Clock::now();
    const Result<void> done = save_search(path_, job, explorer, uncontrolled);
    trouble_ = done.ok() ? std::nullopt : std::optional(done.error());
    const auto now = Clock::now();
    next_ = now + std::max<Clock::duration>(std::chrono::seconds(1), kShare * (now - begun));
  }
  const std::optional<Error>& trouble() const { return trouble_; }  // of the last attempt

 private:
  static constexpr int kShare = 20;  // saving may take a twentieth of the time
  std::filesystem::path path_;
  std::optional<Error> trouble_;
  Clock::time_point next_ = Clock::now() + std::chrono::seconds(1);
};

bool came_to_an_end(const Execution& execution) {
  return !execution.divergence && !std::holds_alternative<Abandoned>(execution.outcome) &&
         !std::holds_alternative<ToolError>(execution.outcome);
}

// Returns the time to reserve for findings: a fifth, and two minutes at most.
double reserve_of(double seconds) {
  return std::min(seconds / 5, 120.0);
}

// Finishes all findings, failures first. Each finding to shrink and replay gets an equal share of the
// remaining time, and most of the share is for shrinking.
Result<void> finish_all(Finisher& finisher, const CampaignOptions& options, Clock::time_point start,
                        const std::function<bool(const Progress&)>& progress, CampaignResult& result) {
  std::vector<const Found*> order;
  for (const Found& found : result.explored.found) order.push_back(&found);
  std::stable_sort(order.begin(), order.end(),
                   [](const Found* a, const Found* b) { return a->verdict.severity < b->verdict.severity; });
  auto left =
      std::ranges::count_if(order, [&](const Found* found) { return finisher.proves(found->verdict); });
  if (!order.empty()) TRY(finisher.take_machine());
  Clock::time_point shown;
  bool stopped = false;
  const auto enough = [&](Progress::Doing doing, uint32_t replays, uint32_t wanted) {
    const auto now = Clock::now();
    if (stopped || (options.stop && options.stop())) return stopped = true;
    if (doing == Progress::Doing::Shrinking && now - shown < std::chrono::milliseconds(100)) return false;
    shown = now;
    return stopped = !progress({.result = result.explored,
                                .coverage = result.explored.coverage,
                                .seconds = seconds_since(start),
                                .schedules = options.schedules,
                                .doing = doing,
                                .finding = result.findings.size(),
                                .findings = order.size(),
                                .replays = replays,
                                .replays_wanted = wanted,
                                .time = options.seconds});
  };
  for (const Found* found : order) {
    Finisher::TimeLimit limit;
    if (options.seconds > 0) {
      constexpr double kToShrink = 0.7;
      const double rest = std::max(0.0, options.seconds - seconds_since(start));
      const double share = finisher.proves(found->verdict) ? rest / static_cast<double>(left--) : rest;
      const auto in = [now = Clock::now()](double seconds) {
        return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
      };
      limit = {in(kToShrink * share), in(share)};
    }
    TRY_ASSIGN(CampaignResult::Kept kept, finisher.finish(*found, enough, limit));
    result.findings.push_back(std::move(kept));
  }
  return {};
}

}  // namespace

Result<CampaignResult> run_campaign(const Target& target, const Job& wanted, const CampaignOptions& options,
                                    const std::function<bool(const Progress&)>& progress) {
  TRY(run_preliminary(target, options.stop));
  const auto start = Clock::now();  // the preliminary search is no part of the time that the user has given
  TRY_ASSIGN(const std::unique_ptr<Strategy> strategy,
             make_strategy(wanted.strategy, wanted.policy, target.traits.yields));
  Job job = wanted;
  Patience patience(options.stop);
  const auto has_enough = [&] { return patience.is_over(); };
  std::atomic<bool> cut_short = false;  // asked by all workers
  const auto stops_learning = [&] {
    const bool late = options.seconds > 0 && seconds_since(start) >= options.seconds;
    if (late || has_enough()) cut_short = true;
    return cut_short.load();
  };
  CampaignResult result;
  if (target.reports.compared) result.compared = target.reports.compared();
  TRY_ASSIGN(const std::optional<LongLook> first_long,
             learn_policy(target, options, strategy->adapts(), stops_learning, job));
  if (options.finds_step_limit && first_long) {
    TRY_ASSIGN(result.longest_look, find_step_limit(target, wanted, *first_long, stops_learning));
    if (result.longest_look > 0) job.max_steps = step_limit_for(result.longest_look);
  }
  result.max_steps = job.max_steps;
  // A later run would take a job whose learning was cut short for another one.
  const std::filesystem::path state = cut_short ? std::filesystem::path() : options.state;
  TRY_ASSIGN(Finisher finisher, Finisher::make(target, job, options));

  ExploreOptions explore;
  explore.inputs = {job.policy, job.max_steps};
  explore.schedules = options.schedules;
  // The time for learning the policy is part of it.
  constexpr double kLeast = 1e-6;
  if (options.seconds > 0) {
    explore.seconds = std::max(kLeast, options.seconds - seconds_since(start));
    explore.reserve = reserve_of(explore.seconds);
  }
  explore.workers = options.workers;
  explore.checkpoint_every = options.checkpoints ? explore.checkpoint_every : 0;
  if (target.traits.yields) explore.insist = kInsist;
  explore.verify = options.verify;
  explore.until = options.until;
  const bool searches_places = target.traits.atomics && job.policy.where == ChoicePolicy::Where::Sync;
  if (searches_places) explore.restart = ExploreOptions::Restart::AtNewRaces;
  TRY_ASSIGN(const MachineUse use, machine_use(job, options));
  const auto factory = [&]() -> Result<Worker> {
    Worker worker;
    TRY_ASSIGN(worker.machine, target.make_machine(use));
    TRY_ASSIGN(worker.observer, select_detectors(worker.machine->names(), job.detectors));
    // A search that does not adapt only has to know which atomic operations it should not have skipped.
    const bool skips = !job.policy.skipped_atomics.empty();
    if (target.make_learner && (strategy->adapts() || skips)) worker.learner = target.make_learner(skips);
    return worker;
  };
  DEBUG_LOG(Campaign, "search: strategy {}, seed {}, {} places of switches, {} workers",
            to_text(job.strategy), job.strategy.seed, job.policy.places.size(), explore.workers);
  Explorer explorer(*strategy, factory, explore);
  std::vector<UncontrolledAct> earlier;
  const auto uncontrolled = [&] {
    std::vector<UncontrolledAct> all;
    if (target.reports.uncontrolled) all = target.reports.uncontrolled();
    for (const UncontrolledAct& one : earlier)
      if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    return all;
  };
  std::optional<LockFile> lock;
  if (!state.empty()) {
    TRY_ASSIGN(LockFile taken, lock_search(state));
    lock.emplace(std::move(taken));
    TRY_ASSIGN(const bool resumed, load_search(state, job, explorer, earlier));
    if (resumed) result.resumed_tasks = explorer.result().tasks;
    DEBUG_LOG(Campaign, "{} {}", options.state.string(),
              resumed ? fmt::format("goes on after {} executions", result.resumed_tasks) : "is a new search");
  }

  auto shown = start;
  Saving saving(state);
  // Save before the search, so that a failure to save shows now and not at the end.
  if (!state.empty() && result.resumed_tasks == 0) {
    saving.save(job, explorer, uncontrolled());
    if (saving.trouble()) return *saving.trouble();
  }
  explorer.on_round = [&](const ExploreResult& so_far) {
    const auto now = Clock::now();
    DEBUG_LOG(Campaign, "round ended: {} executions, {} classes, {} findings, {} learned places, {} diverged",
              so_far.tasks, so_far.classes, so_far.found.size(), so_far.learned.size(), so_far.diverged);
    if (!state.empty() && saving.is_due()) saving.save(job, explorer, uncontrolled());
    if (options.stop && options.stop()) return false;
    if (now - shown < std::chrono::milliseconds(100)) return true;
    shown = now;
    return progress(Progress{.result = so_far,
                             .coverage = strategy->coverage(),
                             .seconds = seconds_since(start),
                             .schedules = options.schedules,
                             .time = options.seconds});
  };
  FirstOutcomes first(target);
  explorer.on_execution = [&](const Task&, const Execution& execution) {
    if (result.resumed_tasks == 0) first.add(execution);
    if (!result.first && came_to_an_end(execution)) result.first = execution.schedule;
  };
  explorer.stop = [&] { return first.are_hopeless() || has_enough(); };
  explorer.on_pause = [&] {
    if (!state.empty()) saving.save(job, explorer, uncontrolled());
  };
  if (target.reports.statistics) target.reports.statistics();
  const std::clock_t used = std::clock();
  TRY_ASSIGN(result.explored, explorer.run());
  if (target.reports.remarks)
    for (std::string& remark : target.reports.remarks()) result.explored.trouble.push_back(std::move(remark));
  result.search_cpu_seconds = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
  if (target.reports.statistics) result.statistics = target.reports.statistics();
  result.unsaved = saving.trouble();
  if (const std::string words = first.trouble(result.explored); !words.empty()) return error("{}", words);
  finisher.learn(result.explored.learned);
  if (target.traits.learns)
    result.communication_points = job.policy.places.size() + result.explored.learned.size();
  result.uncontrolled = uncontrolled();
  TRY_ASSIGN(ClaimFacts facts, claim_facts(target, job, result, strategy->adapts()));
  facts.restarts = searches_places && strategy->restarts();
  result.claim = make_claim(facts);

  const Result<void> finished = finish_all(finisher, options, start, progress, result);
  if (!finished.ok()) return finished.error();
  result.unkept = finisher.unkept();
  result.seconds = seconds_since(start);
  return result;
}

std::vector<ChoiceKind> switch_kinds(const Execution& execution) {
  std::vector<ChoiceKind> kinds;
  for (const ChoiceRecord& record : execution.choices)
    if (record.kind != ChoiceKind::Data && record.taken.agent != record.current) kinds.push_back(record.kind);
  return kinds;
}

namespace {

Result<Replay> replay_on(const MachineUse& use, const Target& target, const Finding& finding,
                         const ChoicePolicy& policy, const MakeSink& record) {
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine(use));
  EventSink* recorder = nullptr;
  if (record) {
    TRY_ASSIGN(recorder, record(machine->names()));
  }
  TRY_ASSIGN(const std::unique_ptr<DetectorSet> detectors,
             select_detectors(machine->names(), target.defaults.replay_detectors));
  RunnerOptions options;
  options.inputs = {policy, finding.max_steps};
  options.inputs.policy.stops = stops_of(finding.schedule);
  options.inputs.reporting.keeps_values = recorder != nullptr;
  options.inputs.repeated = {finding.schedule.errors, true};
  options.recording = Recording::Choices;
  options.fair = false;
  options.checkpoint_every = 0;
  options.hash_states = true;
  Runner runner(*machine, detectors.get(), options);
  runner.set_extra_sink(recorder);
  ScheduleWalker walker(finding.schedule);
  Replay replay;
  replay.execution = runner.run(Task{}, walker);
  if (const auto* tool = std::get_if<ToolError>(&replay.execution.outcome)) return error("{}", tool->message);
  for (const Verdict& verdict : replay.execution.verdicts)
    if (verdict.title == finding.verdict.title) replay.verdict = verdict;
  replay.divergence = walker.divergence();
  if (finding.schedule.errors && replay.execution.schedule.errors)
    replay.calls = differences(*finding.schedule.errors, *replay.execution.schedule.errors, machine->names());
  // Older capsules of kernels hold the happens-before hash instead.
  replay.another_course = finding.schedule.digest != 0 &&
                          finding.schedule.digest != replay.execution.schedule.digest &&
                          finding.schedule.digest != replay.execution.class_hash;
  if (!replay.divergence && replay.another_course)
    replay.divergence = "the same switches led to another execution";
  if (!replay.divergence && finding.state_hash != 0 && finding.state_hash != replay.execution.state_hash)
    replay.divergence =
        fmt::format("the same switches led to another state: its hash is {:#018x}, not {:#018x}",
                    replay.execution.state_hash, finding.state_hash);
  return replay;
}

}  // namespace

Result<Replay> replay_finding(const Target& target, const Finding& finding, const ChoicePolicy& policy,
                              const MakeSink& record) {
  TRY(run_preliminary(target, {}));
  TRY_ASSIGN(Replay replay, replay_on({.from_start = true}, target, finding, policy, record));
  if (!replay.another_course || replay.execution.set_up_steps == 0) return replay;
  // The digest in an older capsule also covers accesses in set-up.
  TRY_ASSIGN(Replay older,
             replay_on({.from_start = true, .orders_set_up = true}, target, finding, policy, {}));
  return older.another_course ? std::move(replay) : std::move(older);
}

Result<Replay> replay_finding(const Target& target, const Finding& finding, const ChoicePolicy& policy,
                              TraceLog* log) {
  return replay_finding(target, finding, policy, [log](const Names&) -> Result<EventSink*> { return log; });
}

}  // namespace slalom
