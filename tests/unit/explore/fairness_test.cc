// Fair schedules end where the program does, and hide nothing that fewer yields could show.
#include "explore/fairness.h"

#include "explore/strategies/replay.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

using Schedules = DfsOptions::Schedules;

Explored explore(const ToyBuilder& b, Schedules schedules, uint64_t max_steps, uint64_t limit = 0) {
  Dfs dfs({.bound = DfsOptions::Bound::None, .schedules = schedules});
  ExploreOptions options;
  options.inputs.max_steps = max_steps;
  options.schedules = limit;
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
  EXPECT_TRUE(fair.result.coverage.exhausted);
  EXPECT_EQ(fair.result.truncated, 0u);
  EXPECT_TRUE(fair.result.found.empty());
  // The setter waits for at most one turn of the loop that is free and one that is not, at each of its steps.
  for (const Trace& trace : fair.traces) EXPECT_LE(trace.steps, 14u);
}

TEST(Fairness, WithoutItTheLoopRunsIntoTheLimit) {
  const Explored all = explore(spinner(), Schedules::All, 20, 2000);
  EXPECT_GT(all.result.truncated, 0u);
  EXPECT_FALSE(all.result.coverage.exhausted);
}

TEST(Fairness, SeveralSpinnersEndToo) {
  ToyBuilder b;
  b.shared("turn", {.atomic = true});
  b.thread("t", "while turn != id { yield }\nturn = id + 1", {.copies = 3});
  const Explored fair = explore(b, Schedules::Fair, 200, 5000);
  EXPECT_EQ(fair.result.truncated, 0u);
  EXPECT_TRUE(fair.result.found.empty());
}

// Each steps back because the other one is there, and comes back with it, for ever. It is fair to both.
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
  EXPECT_FALSE(fair.result.coverage.exhausted);
}

TEST(Fairness, ASpinThatNeverYieldsIsABadSamaritan) {
  ToyBuilder b;
  b.shared("flag", {.atomic = true});
  b.thread("spinner", "while flag == 0 { }").thread("setter", "flag = 1");
  const Explored fair = explore(b, Schedules::Fair, 100, 200);
  EXPECT_TRUE(kinds(fair.result).contains(BugKind::GoodSamaritan));
  EXPECT_FALSE(kinds(fair.result).contains(BugKind::Livelock));
}

// Programs without loops pass no yield twice, so nothing may be missing, whatever they do.
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

// Two yields in a row and the error behind them: what an agent does after a yield may come before anything
// else.
TEST(Fairness, AnErrorBehindYieldsIsFound) {
  ToyBuilder b;
  b.shared("x", {.atomic = true});
  b.thread("a", "yield\nyield\nyield\nx = 1").thread("b", "assert x == 0");
  EXPECT_TRUE(kinds(explore(b, Schedules::Fair, 100).result).contains(BugKind::Assertion));
}

// What is a failure under fairness is one without, with the same schedule.
TEST(Fairness, OnlyLeavesOut) {
  ToyBuilder b;
  b.shared("flag", {.atomic = true}).shared("x");
  b.thread("spinner", "while flag == 0 { yield }\nassert x == 1").thread("setter", "flag = 1\nx = 1");
  const Explored fair = explore(b, Schedules::Fair, 100);
  ASSERT_TRUE(kinds(fair.result).contains(BugKind::Assertion));
  EXPECT_TRUE(fair.result.coverage.exhausted);
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
