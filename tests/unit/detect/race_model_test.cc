// On random executions: the race detector against a second definition of a race, and detectors' state as a
// value.
#include <gtest/gtest.h>

#include <set>

#include "base/rng.h"
#include "unit/detect/simulator.h"

namespace slalom::test {
namespace {

using Pairs = std::set<std::pair<uint64_t, uint64_t>>;

Pairs detected(const Script& script) {
  Pairs pairs;
  for (const Verdict& verdict : script.verdicts("race"))
    pairs.emplace(verdict.evidence.at(0).step.raw, verdict.evidence.at(1).step.raw);
  return pairs;
}

std::set<uint64_t> second_steps(const Pairs& pairs) {
  std::set<uint64_t> steps;
  for (const auto& [first, second] : pairs) steps.insert(second);
  return steps;
}

void compare_with_naive(uint64_t executions, const SimulatorOptions& options) {
  uint64_t racing = 0, accesses = 0, missed_pairs = 0;
  for (uint64_t seed = 0; seed < executions; ++seed) {
    const Script script = random_execution(seed, options);
    const auto expected_list = naive_races(script.log());
    const Pairs expected(expected_list.begin(), expected_list.end());
    const Pairs actual = detected(script);
    for (const auto& pair : actual)
      ASSERT_TRUE(expected.contains(pair)) << "seed " << seed << ": " << pair.first << "," << pair.second;
    // Dropped records may cost pairs, but every access that races with any other must be noticed.
    ASSERT_EQ(second_steps(actual), second_steps(expected)) << "seed " << seed;
    racing += second_steps(expected).size();
    missed_pairs += expected.size() - actual.size();
    accesses += script.log().accesses().size();
  }
  // The comparison means something only if both answers are common and records are dropped.
  EXPECT_GT(racing, accesses / 20);
  EXPECT_LT(racing, accesses * 19 / 20);
  EXPECT_GT(missed_pairs, 0u);
}

TEST(RaceModel, EveryRacingAccessIsFoundAndNoOther) {
  compare_with_naive(1500, {60, false, 60});
}
TEST(RaceModel, MostlySynchronisation) {
  compare_with_naive(700, {120, false, 85});
}
TEST(RaceModel, OverlappingBytesOfMixedSizes) {
  compare_with_naive(1200, {70, true, 55});
}

// Feeds the entries from `from` to `to` to `set`.
void feed(const TraceLog& log, size_t from, size_t to, Observer& set) {
  for (size_t i = from; i < to; ++i) {
    const auto& entry = log.order()[i];
    if (entry.what == TraceLog::Entry::What::Event) {
      set.on_event(log.events()[entry.index]);
    } else {
      const auto& batch = log.batches()[entry.index];
      set.on_accesses(std::span(log.accesses()).subspan(batch.first, batch.count), batch.header);
    }
  }
}

std::vector<Verdict> finish(const TraceLog& log, size_t from, Observer& set) {
  feed(log, from, log.order().size(), set);
  set.on_end(log.outcome());
  std::vector<Verdict> verdicts;
  set.harvest(verdicts);
  return verdicts;
}

TEST(DetectorState, RestoringAtAnyPointChangesNothing) {
  uint64_t verdicts = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Script script = random_execution(seed, {80, seed % 2 == 0, 60});
    // Every kind of outcome that a detector uses, in addition to the races.
    if (seed % 4 == 1)
      script.end(Faulted{Faulted::Kind::Crash, script.agent("t1"), script.place("p3"), "bad"});
    if (seed % 4 == 2) script.end(Deadlocked{{script.waiting("t1", OpKind::Wait, "c", "p4")}});
    if (seed % 4 == 3) script.end(LimitReached{script.steps(), {script.agent("t0")}});
    const TraceLog& log = script.log();
    auto set = *select_detectors(script.names(), "all");
    auto other = *select_detectors(script.names(), "all");
    const std::vector<Verdict> expected = judge(log, *set);
    verdicts += expected.size();
    for (size_t cut = 0; cut <= log.order().size(); ++cut) {
      set->reset();
      feed(log, 0, cut, *set);
      const auto state = set->save();
      ASSERT_EQ(finish(log, cut, *set), expected) << "saving disturbed the detectors";
      set->restore(*state);
      ASSERT_EQ(finish(log, cut, *set), expected) << "seed " << seed << " cut " << cut;
      other->restore(*state);
      ASSERT_EQ(finish(log, cut, *other), expected) << "restored into another set";
    }
  }
  EXPECT_GT(verdicts, 50u);
}

TEST(DetectorState, ResetForgetsTheExecutionBefore) {
  const Script first = random_execution(1, {});
  const Script second = random_execution(2, {});
  auto fresh = *select_detectors(second.names(), "all");
  auto used = *select_detectors(second.names(), "all");
  const auto expected = judge(second.log(), *fresh);
  feed(first.log(), 0, first.log().order().size(), *used);
  used->reset();
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(judge(second.log(), *used), expected);
}

// A live machine may deliver the same accesses in larger batches.
TEST(DetectorState, BatchesDoNotMatter) {
  Script script;
  Access batch[12] = {};
  for (uint64_t i = 0; i < std::size(batch); ++i) {
    batch[i].pc_bits = script.place(fmt::format("a:{}", i)).raw;
    batch[i].op_bits = static_cast<uint64_t>(i % 3 == 0 ? OpKind::Store : OpKind::Load);
    batch[i].size = 8;
    batch[i].address_bits = script.object(fmt::format("x{}", i % 4)).raw;
    batch[i].wrote = i % 3 == 0;
    batch[i].retired = i;
  }
  const AgentId a = script.agent("a"), b = script.agent("b");
  auto whole = *select_detectors(script.names(), "all");
  auto single = *select_detectors(script.names(), "all");
  for (const auto& [agent, first] : {std::pair(a, 0u), std::pair(b, 12u)}) {
    whole->on_accesses(batch, {agent, 0, Step{first}});
    for (const Access& access : batch) {
      Access one = access;
      one.retired = 0;
      single->on_accesses({&one, 1}, {agent, 0, Step{first + access.retired}});
    }
  }
  std::vector<Verdict> from_whole, from_single;
  whole->on_end(LimitReached{24, {a, b}});
  single->on_end(LimitReached{24, {a, b}});
  whole->harvest(from_whole);
  single->harvest(from_single);
  EXPECT_FALSE(from_whole.empty());
  EXPECT_EQ(from_whole, from_single);
}

}  // namespace
}  // namespace slalom::test
