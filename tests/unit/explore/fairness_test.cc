// Fair schedules end where the program ends, and hide no bug that needs fewer yields.
#include "explore/fairness.h"

#include "explore/replay.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

using Schedules = DfsOptions::Schedules;

Explored explore(const ToyBuilder& b, Schedules schedules, uint64_t max_steps, uint64_t limit = 0,
                 uint32_t insist = 0) {
  Dfs dfs({.bound = DfsOptions::Bound::None, .schedules = schedules});
  ExploreOptions options;
  options.inputs.max_steps = max_steps;
  options.schedules = limit;
  options.insist = insist;
  return explore(toy_workers(built(b)), dfs, options);
}

std::set<BugKind> kinds(const ExploreResult& result) {
  std::set<BugKind> kinds;
  for (const Found& found : result.found) kinds.insert(found.verdict.kind);
  return kinds;
}

ToyBuilder spinner() {
  ToyBuilder b;
  b.shared("flag", {.atomic = true}).shared("x", {.atomic = true});
  b.thread("spinner", "while flag == 0 { yield }").thread("setter", "x = 1\nflag = 1");
  return b;
}

TEST(Fairness, ASpinLoopThatYieldsEnds) {
  const Explored fair = explore(spinner(), Schedules::Fair, 60);
  EXPECT_TRUE(exhausted(fair.result));
  EXPECT_EQ(fair.result.truncated, 0u);
  EXPECT_TRUE(fair.result.found.empty());
  // At each of its steps, the setter waits for at most one free turn of the loop and one that is not free.
  for (const Trace& trace : fair.traces) EXPECT_LE(trace.steps, 14u);
}

TEST(Fairness, WithoutItTheLoopRunsIntoTheLimit) {
  const Explored all = explore(spinner(), Schedules::All, 20, 2000);
  EXPECT_GT(all.result.truncated, 0u);
  EXPECT_FALSE(exhausted(all.result));
}

TEST(Fairness, SeveralSpinnersEndToo) {
  ToyBuilder b;
  b.shared("turn", {.atomic = true});
  b.thread("t", "while turn != id { yield }\nturn = id + 1", {.copies = 3});
  const Explored fair = explore(b, Schedules::Fair, 200, 5000);
  EXPECT_EQ(fair.result.truncated, 0u);
  EXPECT_TRUE(fair.result.found.empty());
}

// The thread polls under a lock: whenever it yields, the setter is blocked or about to be. An agent that it
// disabled since its last yield counts as starved. Otherwise it would never have to give way.
TEST(Fairness, WhoDisablesTheOthersGivesWayToThem) {
  ToyBuilder b;
  b.shared("flag").sync("m", ToySyncKind::Mutex);
  b.thread("poller", "lock m\nwhile flag == 0 {\nunlock m\nlock m\nyield\n}\nunlock m");
  b.thread("setter", "lock m\nflag = 1\nunlock m");
  const Explored fair = explore(b, Schedules::Fair, 200, 5000);
  EXPECT_TRUE(fair.result.coverage.exhausted);
  EXPECT_EQ(fair.result.truncated, 0u);
  EXPECT_EQ(kinds(fair.result), std::set<BugKind>{});
}

// Each thread steps back because the other is there, and comes back with it, for ever. The schedule is fair
// to both.
TEST(Fairness, PoliteThreadsAreALivelock) {
  ToyBuilder b;
  b.shared("want", {.size = 2, .atomic = true});
  b.thread("polite",
           "want[id] = 1\nyield\n"
           "while want[1 - id] == 1 {\n"
           "  yield\n  want[id] = 0\n  yield\n  want[id] = 1\n  yield\n"
           "}\n"
           "want[id] = 0",
           {.copies = 2});
  Dfs dfs;
  ExploreOptions options;
  options.inputs.max_steps = 300;
  options.schedules = 1000;
  const Explored fair = explore(toy_workers(built(b)), dfs, options);
  EXPECT_EQ(kinds(fair.result), std::set{BugKind::Livelock});
  EXPECT_GT(fair.result.truncated, 0u);
  EXPECT_GT(fair.result.executions, 0u) << "some schedules end";
  EXPECT_FALSE(exhausted(fair.result));
}

TEST(Fairness, ASpinThatNeverYieldsIsABadSamaritan) {
  ToyBuilder b;
  b.shared("flag", {.atomic = true});
  b.thread("spinner", "while flag == 0 { }").thread("setter", "flag = 1");
  const Explored fair = explore(b, Schedules::Fair, 100, 200);
  EXPECT_TRUE(kinds(fair.result).contains(BugKind::GoodSamaritan));
  EXPECT_FALSE(kinds(fair.result).contains(BugKind::Livelock));
}

// Programs without loops yield at no place twice, so no behaviour may be missing.
TEST(Fairness, LosesNothingInProgramsWithoutLoops) {
  const char* operations[] = {
      "yield\n", "yield\n", "x = 1\n", "x = 2\n", "y = 1\n", "assert x != 2\n", "r = y\nassert x + r != 2\n"};
  size_t failures = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    Rng rng(seed);
    std::string code[2];
    for (int i = 0; i < 8; ++i) code[rng.below(2)] += operations[rng.below(std::size(operations))];
    SCOPED_TRACE("a:\n" + code[0] + "b:\n" + code[1]);
    ToyBuilder b;
    b.shared("x").shared("y").thread("a", code[0]).thread("b", code[1]);
    Dfs fair({.bound = DfsOptions::Bound::None});
    Dfs all({.bound = DfsOptions::Bound::None, .schedules = Schedules::All});
    const Reached with = search(built(b), fair);
    const Reached without = search(built(b), all);
    EXPECT_EQ(with, without);
    EXPECT_EQ(with.result.executions, without.result.executions);
    failures += with.titles.size();
  }
  EXPECT_GT(failures, 50u);
}

// Two consecutive yields, and an error after them: an agent's operation after a yield may come before any
// other operation.
TEST(Fairness, AnErrorBehindYieldsIsFound) {
  ToyBuilder b;
  b.shared("x", {.atomic = true});
  b.thread("a", "yield\nyield\nyield\nx = 1").thread("b", "assert x == 0");
  EXPECT_TRUE(kinds(explore(b, Schedules::Fair, 100).result).contains(BugKind::Assertion));
}

// Checks this many times whether the other thread has come, and yields in between. Then it relies on it.
ToyBuilder gives_up_after(int looks) {
  ToyBuilder b;
  b.shared("x", {.atomic = true}).shared("y", {.atomic = true});
  b.thread("looks", fmt::format("for i in 0..{} {{ r = x\nyield }}\nassert x == 1\ny = 1", looks));
  b.thread("comes", "x = 1\ny = 2");
  return b;
}

TEST(Fairness, WhatComesAfterManyYieldsIsFoundByInsisting) {
  for (int looks : {3, 8, 20}) {
    const Explored strict = explore(gives_up_after(looks), Schedules::Fair, 200);
    EXPECT_TRUE(strict.result.found.empty());
    EXPECT_EQ(strict.result.coverage.statement, "every fair schedule was executed");
    const Explored insisting = explore(gives_up_after(looks), Schedules::Fair, 200, 0, 30);
    EXPECT_EQ(kinds(insisting.result), std::set{BugKind::Assertion});
    EXPECT_EQ(insisting.result.coverage.statement, "every fair schedule was executed");
    EXPECT_LT(insisting.result.executions, 4 * strict.result.executions);
  }
  EXPECT_TRUE(explore(gives_up_after(20), Schedules::Fair, 200, 0, 10).result.found.empty()) << "too often";
}

// The thread is alone only in the loop. The code after the loop has all its choices.
TEST(Fairness, WhoInsistedCanBePreemptedAfterwards) {
  const auto ends = [](Schedules schedules, uint32_t insist) {
    Dfs dfs({.bound = DfsOptions::Bound::None, .schedules = schedules});
    SearchOptions options;
    options.explore.insist = insist;
    ToyBuilder b;
    b.shared("x", {.atomic = true}).shared("y", {.atomic = true}).shared("z", {.atomic = true});
    b.thread("looks", "for i in 0..5 { r = x\nyield }\nz = x * 10 + y\nx = 2\ny = 2");
    b.thread("comes", "x = 1\ny = 1\ny = 3");
    return search(built(b), dfs, options).states;
  };
  const std::set<uint64_t> strict = ends(Schedules::Fair, 0), all = ends(Schedules::All, 0);
  EXPECT_LT(strict.size(), all.size());
  EXPECT_EQ(ends(Schedules::Fair, 30), all);
}

TEST(Fairness, WhoInsistsInVainGivesWay) {
  const Explored strict = explore(spinner(), Schedules::Fair, 200);
  const Explored insisting = explore(spinner(), Schedules::Fair, 200, 0, 30);
  EXPECT_TRUE(exhausted(insisting.result));
  EXPECT_EQ(insisting.result.truncated, 0u);
  EXPECT_TRUE(insisting.result.found.empty());
  EXPECT_GT(insisting.result.executions, strict.result.executions);
  EXPECT_LT(insisting.result.executions, 3 * strict.result.executions);
  uint64_t longest = 0;
  for (const Trace& trace : insisting.traces) longest = std::max(longest, trace.steps);
  EXPECT_GT(longest, 60u);  // two operations per turn
  EXPECT_LT(longest, 90u);  // once
}

TEST(Fairness, TheStatementIsAboutFairSchedulesOnlyIfOthersWereLeftOut) {
  ToyBuilder b;
  b.shared("x", {.atomic = true}).thread("a", "yield\nx = 1\nyield").thread("b", "x = 2");
  EXPECT_EQ(explore(b, Schedules::Fair, 100).result.coverage.statement, "every schedule was executed");
  Dfs dfs({.limit = 1});
  ExploreOptions options;
  options.inputs.max_steps = 100;
  EXPECT_EQ(explore(toy_workers(built(spinner())), dfs, options).result.coverage.statement,
            "every fair schedule with at most 1 preemption was executed");
}

// A failure under fairness is also one without it, with the same schedule.
TEST(Fairness, OnlyLeavesOut) {
  ToyBuilder b;
  b.shared("flag", {.atomic = true}).shared("x");
  b.thread("spinner", "while flag == 0 { yield }\nassert x == 1").thread("setter", "flag = 1\nx = 1");
  const Explored fair = explore(b, Schedules::Fair, 100);
  ASSERT_TRUE(kinds(fair.result).contains(BugKind::Assertion));
  EXPECT_TRUE(exhausted(fair.result));
  ToyMachine machine(built(b));
  const auto detectors = all_detectors(machine.names());
  RunnerOptions options;
  options.fair = false;
  Runner runner(machine, detectors.get(), options);
  for (const Trace& trace : fair.traces) {
    ScheduleWalker walker(trace.schedule);
    EXPECT_EQ(trace_of(runner.run(Task{}, walker)), trace);
    EXPECT_EQ(walker.divergence(), std::nullopt);
  }
}

}  // namespace
}  // namespace slalom
