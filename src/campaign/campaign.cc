#include "campaign/campaign.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <iterator>
#include <utility>

#include "campaign/looking.h"
#include "campaign/saved_search.h"
#include "detect/detector_set.h"
#include "explore/shrink.h"
#include "explore/strategies/random.h"
#include "explore/strategies/replay.h"
#include "explore/strategies/sampling.h"
#include "finding/store.h"
#include "report/text.h"

namespace slalom {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

OrderPoint order_point(const OperationPlace& place, const Names& names) {
  std::string text{name(place.op.kind)};
  if (place.op.object.raw != 0) text += " " + names.object(place.op.object);
  return {place.agent, place.ops, place.op.pc, std::move(text)};
}

// Decided once for a search: all its machines recognise the same.
Result<MachineUse> machine_use(const Job& job, const CampaignOptions& options) {
  TRY_ASSIGN(const Needs needs, needs_of(job.detectors));
  const bool compares = options.verify != ExploreOptions::Verify::No;
  return MachineUse{options.checkpoints, needs.locks, needs.memory, compares};
}

constexpr uint32_t kLongReplays = 2;  // of a finding whose execution is long
// libstdc++ reads and yields 16 times before it sleeps; other libraries do so some tens of times.
constexpr uint32_t kInsist = 64;

// Has the user had enough? `replays`: made of the finding at hand.
using Stop = std::function<bool(Progress::Doing doing, uint32_t replays)>;

// What is done with each bug once the search is over; one machine does it all.
class Finisher {
 public:
  static Result<Finisher> make(const Target& target, const Job& job, const CampaignOptions& options) {
    Finisher finisher(target, job, options);
    if (!options.store.empty()) {
      TRY_ASSIGN(FindingStore store, FindingStore::open(options.store, options.key));
      finisher.store_.emplace(std::move(store));
    }
    return finisher;
  }

  // After the search, which has no use for its machines any more.
  Result<void> take_machine() {
    TRY_ASSIGN(const MachineUse use, machine_use(job_, options_));
    TRY_ASSIGN(machine_, target_.make_machine(use));
    TRY_ASSIGN(detectors_, select_detectors(machine_->names(), job_.detectors));
    return {};
  }

  // Places to switch at that the search has learned.
  void learn(const std::vector<Place>& places) {
    std::vector<Place> all;
    std::ranges::set_union(policy_.places, places, std::back_inserter(all));
    policy_.places = std::move(all);
  }

  Result<CampaignResult::Kept> finish(const Found& found, const Stop& stop) {
    CampaignResult::Kept kept;
    Finding& finding = kept.finding;
    finding.verdict = found.verdict;
    finding.target = target_.id;
    finding.policy = policy_;
    finding.max_steps = job_.max_steps;
    finding.schedule = finding.original = found.schedule;
    finding.strategy = to_text(job_.strategy);
    finding.seed = job_.strategy.seed;
    finding.execution = found.execution;
    finding.occurrences = found.occurrences;
    const bool thorough = options_.races_count || found.verdict.severity == Severity::Failure;
    // Executions that go on to the limit take too long to be made often.
    const bool endless = target_.input_trouble && found.verdict.kind == BugKind::Livelock;
    const uint32_t replays = !thorough ? 0 : endless ? std::min(2u, options_.replays) : options_.replays;
    if (options_.shrink && thorough && !endless && !stop(Progress::Doing::Shrinking, 0))
      kept.cut_short = shrink(finding, stop);
    TraceLog log;
    std::vector<ChoiceKind> kinds;
    std::vector<std::string> differences;
    for (uint32_t i = 0; i < std::max(1u, replays); ++i) {
      kept.interrupted = stop(Progress::Doing::Replaying, i);
      if (kept.interrupted && (i > 0 || !thorough)) break;
      if (kept.cut_short && i >= kLongReplays) break;
      TRY_ASSIGN(const Replay replay,
                 replay_finding(target_, finding, finding.policy, i == 0 ? &log : nullptr));
      if (i == 0) kinds = switch_kinds(replay.execution);
      const uint64_t steps = replay.execution.steps - replay.execution.set_up_steps;
      if (target_.long_steps != 0 && steps >= target_.long_steps) kept.cut_short = true;
      if (i == 0 && target_.keeps_states && !replay.divergence)
        finding.state_hash = replay.execution.state_hash;
      if (replays == 0) break;
      ++finding.replays_tried;
      finding.replays_same += replay.same();
      if (!replay.same() && differences.empty()) differences = replay.calls;
    }
    if (target_.surroundings) finding.surroundings = target_.surroundings();
    TextOptions plain;
    plain.switch_kinds = kinds;
    plain.interrupted = kept.interrupted;
    plain.cut_short = kept.cut_short;
    plain.differences = differences;
    if (store_) {
      // Without it the report is worth all the more: it must not be lost, too.
      const auto added = store_->add(finding, text_report(finding, log, machine_->names(), plain));
      if (added.ok())
        kept.capsule = *added;
      else
        unkept_ = added.error();
    }
    TextOptions shown = options_.report;
    shown.switch_kinds = std::move(kinds);
    shown.interrupted = kept.interrupted;
    shown.cut_short = kept.cut_short;
    shown.differences = std::move(differences);
    if (!kept.capsule.empty())
      shown.replay_command = target_.replay_command ? target_.replay_command(kept.capsule.string())
                                                    : "slalom replay " + kept.capsule.string();
    kept.report = text_report(finding, log, machine_->names(), shown);
    return kept;
  }

  const std::optional<Error>& unkept() const { return unkept_; }

 private:
  Finisher(const Target& target, const Job& job, const CampaignOptions& options)
      : target_(target), job_(job), policy_(job.policy), options_(options) {}

  // True: it would have taken too many long executions.
  bool shrink(Finding& finding, const Stop& stop) {
    ShrinkOptions shrinking;
    shrinking.stop = [&] { return stop(Progress::Doing::Shrinking, 0); };
    shrinking.executions = options_.shrink_executions;
    shrinking.long_steps = target_.long_steps;
    shrinking.minimum_executions = std::min(shrinking.minimum_executions, options_.shrink_executions / 2);
    Shrinker shrinker(*machine_, *detectors_, Inputs{policy_, job_.max_steps}, shrinking);
    const Result<Shrunk> shrunk = shrinker.shrink(finding.schedule, finding.verdict.title);
    if (!shrunk.ok()) return false;  // the replays below will say so
    finding.schedule = shrunk->schedule;
    finding.verdict = shrunk->verdict;
    finding.minimality = shrunk->proof == Shrunk::Proof::Minimum   ? Minimality::Minimum
                         : shrunk->proof == Shrunk::Proof::Minimal ? Minimality::Minimal
                                                                   : Minimality::Unshrunk;
    for (const Shrunk::Constraint& constraint : shrunk->constraints)
      finding.constraints.push_back({order_point(constraint.before, machine_->names()),
                                     order_point(constraint.after, machine_->names())});
    return shrunk->cut_short;
  }

  const Target& target_;
  const Job& job_;
  ChoicePolicy policy_;
  const CampaignOptions& options_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<DetectorSet> detectors_;
  std::optional<FindingStore> store_;
  std::optional<Error> unkept_;
};

// True a moment after the user has had enough: what is at hand may end by itself.
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

}  // namespace

Result<CampaignResult> run_campaign(const Target& target, const Job& wanted, const CampaignOptions& options,
                                    const std::function<bool(const Progress&)>& progress) {
  const auto start = Clock::now();
  TRY_ASSIGN(const std::unique_ptr<Strategy> strategy,
             make_strategy(wanted.strategy, wanted.policy, target.yields));
  Job job = wanted;
  Patience patience(options.stop);
  const auto has_enough = [&] { return patience.is_over(); };
  TRY(look_first(target, options, strategy->adapts(), has_enough, job));
  TRY_ASSIGN(Finisher finisher, Finisher::make(target, job, options));

  ExploreOptions explore;
  explore.inputs = {job.policy, job.max_steps};
  explore.schedules = options.schedules;
  // What looking took is part of it.
  constexpr double kLeast = 1e-6;
  if (options.seconds > 0) explore.seconds = std::max(kLeast, options.seconds - seconds_since(start));
  explore.workers = options.workers;
  explore.checkpoint_every = options.checkpoints ? explore.checkpoint_every : 0;
  if (target.yields) explore.insist = kInsist;
  explore.verify = options.verify;
  explore.until = options.until;
  TRY_ASSIGN(const MachineUse use, machine_use(job, options));
  const auto factory = [&]() -> Result<Worker> {
    Worker worker;
    TRY_ASSIGN(worker.machine, target.make_machine(use));
    TRY_ASSIGN(worker.observer, select_detectors(worker.machine->names(), job.detectors));
    return worker;
  };
  Explorer explorer(*strategy, factory, explore);
  CampaignResult result;
  if (!options.state.empty()) {
    TRY_ASSIGN(const bool resumed, load_search(options.state, job, explorer));
    if (resumed) result.resumed_tasks = explorer.result().tasks;
  }

  auto shown = start;
  auto saved = start;
  std::optional<Error> trouble;
  const auto save = [&] {
    if (Result<void> done = save_search(options.state, job, explorer); !done.ok()) trouble = done.error();
    saved = Clock::now();
  };
  // Before the search: what cannot be saved in the end is known now.
  if (!options.state.empty() && result.resumed_tasks == 0) save();
  if (trouble) return *trouble;
  explorer.on_round = [&](const ExploreResult& so_far) {
    const auto now = Clock::now();
    if (!options.state.empty() && now - saved >= std::chrono::seconds(1)) save();
    if (trouble || (options.stop && options.stop())) return false;
    if (now - shown < std::chrono::milliseconds(100)) return true;
    shown = now;
    return progress(Progress{so_far, strategy->coverage(), seconds_since(start)});
  };
  FirstEnds first(target);
  if (result.resumed_tasks == 0)
    explorer.on_execution = [&](const Task&, const Execution& execution) { first.add(execution); };
  explorer.stop = [&] { return first.are_hopeless() || has_enough(); };
  explorer.on_pause = [&] {
    if (!options.state.empty()) save();
  };
  if (target.statistics) target.statistics();
  const std::clock_t used = std::clock();
  TRY_ASSIGN(result.explored, explorer.run());
  result.search_cpu_seconds = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
  if (target.statistics) result.statistics = target.statistics();
  if (trouble) return *trouble;
  if (const std::string words = first.trouble(result.explored); !words.empty()) return error("{}", words);
  finisher.learn(result.explored.learned);
  if (target.atomics && job.policy.where == ChoicePolicy::Where::Sync && !strategy->adapts() &&
      !std::ranges::includes(job.policy.places, places_of_races(result.explored.found))) {
    result.explored.coverage.exhausted = false;
    result.explored.coverage.statement +=
        "; but for switches at accesses that were seen to race only during the search: use --choices "
        "everywhere";
  }
  std::string& statement = result.explored.coverage.statement;
  if (!target.scope.empty()) statement += fmt::format(", of those in {} and what they call", target.scope);
  if (target.learns) {
    result.communication_points = job.policy.places.size() + result.explored.learned.size();
    if (result.communication_points > 0)
      statement +=
          fmt::format("{} Switches at {} by which {} were seen to communicate.",
                      statement.ends_with('.') ? "" : ".", plural(result.communication_points, "instruction"),
                      target.id.kind == "kernel" ? "the flows" : "threads");
  }

  std::vector<const Found*> order;
  for (const Found& found : result.explored.found) order.push_back(&found);
  std::stable_sort(order.begin(), order.end(),
                   [](const Found* a, const Found* b) { return a->verdict.severity < b->verdict.severity; });
  bool stopped = false;
  const auto stop = [&](Progress::Doing doing, uint32_t replays) {
    const auto now = Clock::now();
    const bool often = doing == Progress::Doing::Shrinking && now - shown < std::chrono::milliseconds(100);
    if (stopped || often) return stopped;
    shown = now;
    return stopped = !progress({result.explored, result.explored.coverage, seconds_since(start), doing,
                                result.findings.size(), replays});
  };
  if (!order.empty()) TRY(finisher.take_machine());
  for (const Found* found : order) {
    TRY_ASSIGN(CampaignResult::Kept kept, finisher.finish(*found, stop));
    result.findings.push_back(std::move(kept));
  }
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
                         const ChoicePolicy& policy, TraceLog* log) {
  TRY_ASSIGN(const std::unique_ptr<Machine> machine, target.make_machine(use));
  TRY_ASSIGN(const std::unique_ptr<DetectorSet> detectors,
             select_detectors(machine->names(), target.all_detectors));
  RunnerOptions options;
  options.inputs = {policy, finding.max_steps};
  options.inputs.policy.stops = stops_of(finding.schedule);
  options.inputs.errors = finding.schedule.errors;
  options.inputs.same_schedule = true;
  options.recording = Recording::Choices;
  options.fair = false;
  options.checkpoint_every = 0;
  options.hash_states = true;
  Runner runner(*machine, detectors.get(), options);
  if (log != nullptr) runner.also_tell(log);
  ScheduleWalker walker(finding.schedule);
  Replay replay;
  replay.execution = runner.run(Task{}, walker);
  if (const auto* tool = std::get_if<ToolError>(&replay.execution.outcome)) return error("{}", tool->message);
  for (const Verdict& verdict : replay.execution.verdicts)
    if (verdict.title == finding.verdict.title) replay.verdict = verdict;
  replay.divergence = walker.divergence();
  if (finding.schedule.errors && replay.execution.schedule.errors)
    replay.calls = differences(*finding.schedule.errors, *replay.execution.schedule.errors, machine->names());
  // Capsules of kernels once had the happens-before hash, too.
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
                              TraceLog* log) {
  TRY_ASSIGN(Replay replay, replay_on({.from_start = true}, target, finding, policy, log));
  if (!replay.another_course || replay.execution.set_up_steps == 0) return replay;
  // The digest in an older capsule is also about accesses in set-up.
  TRY_ASSIGN(Replay older,
             replay_on({.from_start = true, .orders_set_up = true}, target, finding, policy, nullptr));
  return older.another_course ? std::move(replay) : std::move(older);
}

}  // namespace slalom
