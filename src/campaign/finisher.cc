#include "campaign/finisher.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "explore/event_sequence.h"
#include "explore/shrink/shrink.h"
#include "report/finding_words.h"

namespace slalom {
namespace {

std::string first_difference(const TraceLog& first, const TraceLog& second, const Names& names) {
  EventSequence a, b;
  first.replay_into(a);
  second.replay_into(b);
  return EventSequence::difference(a, b, names);
}

// A finding whose execution is long is replayed as often as kReplaySteps allow, and at least kLeastReplays
// times. A choice point counts as kChoiceSteps. A finding that runs to the step limit is replayed twice.
constexpr uint64_t kReplaySteps = 20'000'000, kChoiceSteps = 50;
constexpr uint32_t kLeastReplays = 2;

OrderPoint order_point(const OperationPlace& place, const Names& names) {
  std::string text{name(place.op.kind)};
  if (place.op.object.raw != 0) text += " " + names.object(place.op.object);
  return {place.agent, place.ops, place.op.pc, std::move(text)};
}

}  // namespace

Result<MachineUse> machine_use(const Job& job, const CampaignOptions& options) {
  TRY_ASSIGN(const Facilities needs, needs_of(job.detectors));
  const bool compares = options.verify != ExploreOptions::Verify::No;
  return MachineUse{options.checkpoints, needs, compares};
}

Result<Finisher> Finisher::make(const Target& target, const Job& job, const CampaignOptions& options) {
  Finisher finisher(target, job, options);
  if (!options.store.empty()) {
    TRY_ASSIGN(FindingStore store, FindingStore::open(options.store, options.key));
    finisher.store_.emplace(std::move(store));
  }
  return finisher;
}

Result<void> Finisher::take_machine() {
  TRY_ASSIGN(const MachineUse use, machine_use(job_, options_));
  TRY_ASSIGN(machine_, target_.make_machine(use));
  TRY_ASSIGN(detectors_, select_detectors(machine_->names(), job_.detectors));
  return {};
}

void Finisher::learn(const std::vector<Place>& places) {
  std::vector<Place> all;
  std::ranges::set_union(policy_.places, places, std::back_inserter(all));
  policy_.places = std::move(all);
}

Finding Finisher::finding_of(const Found& found) const {
  Finding finding;
  finding.verdict = found.verdict;
  finding.target = target_.id;
  finding.policy = policy_;
  finding.max_steps = job_.max_steps;
  finding.schedule = finding.original = found.schedule;
  finding.strategy = to_text(job_.strategy);
  finding.seed = job_.strategy.seed;
  finding.execution = found.execution;
  finding.occurrences = found.occurrences;
  return finding;
}

// Executions that run to the limit take too long to be repeated often.
uint32_t Finisher::replays_wanted(const Found& found) const {
  if (!proves(found.verdict)) return 0;
  const bool endless = target_.reports.input_trouble && found.verdict.kind == BugKind::Livelock;
  return endless ? std::min(2u, options_.replays) : options_.replays;
}

Result<CampaignResult::Kept> Finisher::finish(const Found& found, const Enough& enough,
                                              const TimeLimit& limit) {
  CampaignResult::Kept kept;
  kept.finding = finding_of(found);
  const uint32_t wanted = replays_wanted(found);
  const Early early = [&](Progress::Doing doing, uint32_t replays) {
    if (enough(doing, replays, wanted)) return CutShort::Interrupted;
    const Clock::time_point end = doing == Progress::Doing::Shrinking ? limit.shrinking : limit.all;
    return Clock::now() >= end ? CutShort::OutOfTime : CutShort::No;
  };
  const bool thorough = proves(found.verdict);
  const bool endless = target_.reports.input_trouble && found.verdict.kind == BugKind::Livelock;
  if (!thorough)
    kept.shrinking = kept.replaying = CutShort::RaceNotAsked;
  else if (options_.shrink && !endless)
    shrink(kept, early);
  Replays replays;
  TRY(replay(kept, wanted, early, replays));
  if (target_.reports.surroundings) kept.finding.surroundings = target_.reports.surroundings();
  keep(kept, std::move(replays));
  return kept;
}

void Finisher::shrink(CampaignResult::Kept& kept, const Early& early) {
  Finding& finding = kept.finding;
  kept.shrinking = early(Progress::Doing::Shrinking, 0);
  if (kept.shrinking != CutShort::No) return;
  ShrinkOptions shrinking;
  shrinking.stop = [&] {
    if (kept.shrinking == CutShort::No) kept.shrinking = early(Progress::Doing::Shrinking, 0);
    return kept.shrinking != CutShort::No;
  };
  shrinking.executions = options_.shrink_executions;
  shrinking.long_steps = target_.traits.long_steps;
  shrinking.near_executions = std::min(shrinking.near_executions, options_.shrink_executions / 4);
  shrinking.minimum_executions = std::min(shrinking.minimum_executions, options_.shrink_executions / 2);
  Inputs inputs{policy_, job_.max_steps};
  inputs.stop = shrinking.stop;
  Shrinker shrinker(*machine_, *detectors_, inputs, shrinking);
  const Result<Shrunk> shrunk = shrinker.shrink(finding.schedule, finding.verdict.title);
  if (!shrunk.ok()) {  // the replays will report the problem
    DEBUG_LOG(Campaign, "cannot shrink: {}", shrunk.error().message);
    return;
  }
  DEBUG_LOG(Campaign, "shrunk \"{}\" from {} switches to {} in {} tries", finding.verdict.title,
            finding.schedule.switches.size(), shrunk->schedule.switches.size(), shrunk->executions);
  finding.schedule = shrunk->schedule;
  finding.verdict = shrunk->verdict;
  finding.minimality = shrunk->proof == Shrunk::Proof::Minimum   ? Minimality::Minimum
                       : shrunk->proof == Shrunk::Proof::Minimal ? Minimality::Minimal
                                                                 : Minimality::Unshrunk;
  finding.excluded = static_cast<uint8_t>(std::min<uint64_t>(shrunk->excluded, kMostExcluded));
  for (const Shrunk::Constraint& constraint : shrunk->constraints)
    finding.constraints.push_back({order_point(constraint.before, machine_->names()),
                                   order_point(constraint.after, machine_->names())});
  if (kept.shrinking == CutShort::No && shrunk->cut_short) kept.shrinking = CutShort::LongExecutions;
}

// Replays a failure at least once, whatever happens: its report shows that execution.
Result<void> Finisher::replay(CampaignResult::Kept& kept, uint32_t wanted, const Early& early,
                              Replays& replays) {
  Finding& finding = kept.finding;
  uint64_t steps = 0;
  TraceLog second;
  for (uint32_t i = 0; i < std::max(1u, wanted); ++i) {
    const CutShort now = early(Progress::Doing::Replaying, i);
    if (now != CutShort::No && wanted > 0) kept.replaying = now;
    if (now != CutShort::No && (i > 0 || wanted == 0)) break;
    if (steps >= kReplaySteps && i >= kLeastReplays) {
      kept.replaying = CutShort::LongExecutions;
      break;
    }
    // Differences between two replays of one schedule come from something that slalom does not control.
    const bool compares = i == 1 && finding.replays_same == 0;
    TraceLog* log = i == 0 ? &replays.log : compares ? &second : nullptr;
    TRY_ASSIGN(const Replay replay, replay_finding(target_, finding, finding.policy, log));
    if (compares)
      if (std::string first = first_difference(replays.log, second, machine_->names()); !first.empty())
        replays.differences.insert(replays.differences.begin(), std::move(first));
    if (i == 0) replays.kinds = switch_kinds(replay.execution);
    if (target_.traits.long_steps != 0 && length_of(replay.execution) >= target_.traits.long_steps)
      steps += std::holds_alternative<LimitReached>(replay.execution.outcome)
                   ? kReplaySteps
                   : replay.execution.steps + kChoiceSteps * replay.execution.choice_points;
    if (i == 0 && target_.traits.keeps_states && !replay.divergence)
      finding.state_hash = replay.execution.state_hash;
    if (wanted == 0) break;
    DEBUG_LOG(Campaign, "replay {} of {}: {}", i + 1, wanted,
              replay.same() ? "the same" : "another course: " + replay.divergence.value_or("another end"));
    ++finding.replays_tried;
    finding.replays_same += replay.same();
    if (!replay.same() && replays.differences.empty()) replays.differences = replay.calls;
  }
  return {};
}

void Finisher::keep(CampaignResult::Kept& kept, Replays replays) {
  kept.finding = in_words(kept.finding, replays.log, machine_->names());
  kept.words = words_of(kept.finding, replays.log, machine_->names());
  TextOptions plain;
  plain.switch_kinds = std::move(replays.kinds);
  plain.shrinking = kept.shrinking;
  plain.replaying = kept.replaying;
  plain.differences = std::move(replays.differences);
  if (store_) {
    // Without a capsule the report is worth all the more: it must not be lost, too.
    const auto added = store_->add(
        kept.finding, text_report(kept.finding, replays.log, machine_->names(), plain), kept.words);
    if (added.ok())
      kept.capsule = *added;
    else
      unkept_ = added.error();
  }
  TextOptions shown = options_.report;
  shown.switch_kinds = std::move(plain.switch_kinds);
  shown.shrinking = plain.shrinking;
  shown.replaying = plain.replaying;
  shown.differences = std::move(plain.differences);
  if (!kept.capsule.empty())
    shown.replay_command = target_.words.replay_command ? target_.words.replay_command(kept.capsule.string())
                                                        : "slalom replay " + kept.capsule.string();
  kept.report = text_report(kept.finding, replays.log, machine_->names(), shown);
}

}  // namespace slalom
