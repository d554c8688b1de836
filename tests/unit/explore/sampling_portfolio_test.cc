#include "explore/strategies/detour.h"
#include "explore/strategies/dfs.h"
#include "explore/strategies/portfolio.h"
#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "round_robin.h"
#include "sampling_support.h"

namespace slalom::sampling {
namespace {

using Arms = std::vector<std::unique_ptr<Strategy>>;

// Several bugs, each of them easy for another strategy.
Program bugs() {
  return build(
      ToyBuilder()
          .shared("x")
          .shared("y")
          .shared("late")
          .shared("turn")
          .sync("m", ToySyncKind::Mutex)
          .sync("n", ToySyncKind::Mutex)
          .thread(
              "a",
              "for i in 0..8 { y = i }; assert late != 0 \"late\"; x = 1; x = 0; lock m; lock n; unlock n; "
              "unlock m")
          .thread("b", "late = 1; turn = 1; assert x == 0 \"between\"")
          .thread("c", "lock n; lock m; unlock m; unlock n; assert turn == 1 \"early\""));
}

struct Seen {
  std::set<std::string> titles;
  std::set<uint64_t> classes;
};

Seen run(Strategy& strategy, uint64_t executions) {
  Seen seen;
  explore(strategy, bugs(), executions, [&](const Task&, const Execution& execution) {
    for (const Verdict& verdict : execution.verdicts) seen.titles.insert(verdict.title);
    seen.classes.insert(execution.class_hash);
  });
  return seen;
}

TEST(SamplingPortfolio, ShowsAllThatAnyArmShowsWithinTheStatedFactor) {
  constexpr uint64_t kAlone = 96;
  const size_t count = sampling_arms(1).size();
  Portfolio portfolio(sampling_arms(1));
  const Seen shared = run(portfolio, 2 * count * kAlone);
  EXPECT_EQ(shared.titles.size(), 4u);
  for (auto& arm : sampling_arms(1)) {
    const Seen alone = run(*arm, kAlone);
    EXPECT_GT(alone.classes.size(), 1u);
    EXPECT_TRUE(
        std::includes(shared.titles.begin(), shared.titles.end(), alone.titles.begin(), alone.titles.end()))
        << arm->name();
    EXPECT_TRUE(std::includes(shared.classes.begin(), shared.classes.end(), alone.classes.begin(),
                              alone.classes.end()))
        << arm->name();
  }
}

TEST(SamplingPortfolio, AnArmThatShowsNothingNewKeepsTheFloorOnly) {
  Arms arms;
  arms.push_back(std::make_unique<RoundRobin>(uint64_t{1} << 40));
  arms.push_back(std::make_unique<Random>());
  Portfolio portfolio(std::move(arms));
  // 24! / 8!^3 classes, and one verdict that is new only once.
  const Program endless = build(ToyBuilder()
                                    .shared("x")
                                    .thread("a", "for i in 0..8 { x = i }", {.copies = 3})
                                    .final_check("0", "always"));
  // Round robin always has new quanta to try, until they are longer than the program.
  explore(portfolio, endless, 64 * 10);
  const uint64_t before = portfolio.executions_of(0);
  explore(portfolio, endless, 64 * 10);
  EXPECT_EQ(portfolio.executions_of(0) - before, 10 * 64 / 4);
  EXPECT_EQ(portfolio.executions_of(0) + portfolio.executions_of(1), 64 * 20u);
}

// In each round, an update may be lost, which ends the execution. The bug after it needs all rounds to
// succeed.
Program hidden_bug() {
  return build(
      ToyBuilder()
          .shared("x", {.atomic = true})
          .shared("late", {.atomic = true})
          .thread("a",
                  "for i in 0..12 { r = x; x = r + 1; q = x; assert q == r + 1 \"early\" }; late = 1; "
                  "late = 0",
                  {.copies = 2})
          .thread("b",
                  "for i in 0..12 { r = x; x = r; q = x; assert q == r \"early too\" }; "
                  "assert late == 0 \"hidden\""));
}

TEST(SamplingPortfolio, GoesRoundAFailureThatEndsMostExecutions) {
  constexpr uint64_t kExecutions = 8000;
  int with = 0, without = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const bool detours : {false, true}) {
      Arms arms;
      arms.push_back(std::make_unique<Random>(RandomOptions{seed}));
      arms.push_back(std::make_unique<Pos>(PosOptions{seed}));
      if (detours) arms.push_back(std::make_unique<Detour>(seed));
      Portfolio portfolio(std::move(arms));
      bool found = false;
      explore(portfolio, hidden_bug(), kExecutions, [&](const Task&, const Execution& execution) {
        for (const Verdict& verdict : execution.verdicts) found = found || verdict.title == "hidden";
      });
      (detours ? with : without) += found;
    }
  }
  EXPECT_GE(with, 4);
  EXPECT_EQ(without, 0);
}

// Each load must come right after its store, else the gate is shut; behind the gates, the same shows the bug.
Program behind_gates(int gates, int loads) {
  std::string code;
  for (int i = 1; i <= gates; ++i) code += fmt::format("r = x; assert r == {} \"gate\"; ", i);
  code += "seen = 0; ";
  uint64_t all = 0;
  for (int i = 1; i <= loads; ++i) {
    code += "r = late; seen = seen * 10 + r; ";
    all = all * 10 + static_cast<uint64_t>(i);
  }
  code += fmt::format("assert seen != {} \"hidden\"", all);
  const std::string stores =
      fmt::format("for i in 0..{} {{ x = i + 1 }}; for i in 0..{} {{ late = i + 1 }}", gates, loads);
  return build(ToyBuilder()
                   .shared("x", {.atomic = true})
                   .shared("late", {.atomic = true})
                   .thread("a", stores)
                   .thread("b", code));
}

// With how many of eight seeds the bug behind the gates is found.
int found_behind(int gates, int loads, uint64_t executions) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Arms arms;
    arms.push_back(std::make_unique<Random>(RandomOptions{seed}));
    arms.push_back(std::make_unique<Pos>(PosOptions{seed}));
    arms.push_back(std::make_unique<Detour>(seed));
    Portfolio portfolio(std::move(arms));
    bool hidden = false;
    explore(portfolio, behind_gates(gates, loads), executions, [&](const Task&, const Execution& execution) {
      for (const Verdict& verdict : execution.verdicts) hidden = hidden || verdict.title == "hidden";
    });
    found += hidden;
  }
  return found;
}

// From gate to gate: at random, one execution in tens of thousands passes them all.
TEST(SamplingPortfolio, ADetourStartsFromExecutionsThatCameFurthest) {
  EXPECT_GE(found_behind(8, 1, 3000), 6);
}

// Few executions pass the gates; those that did are repeated up to where the bug can be.
TEST(SamplingPortfolio, WhatComesAfterAFailureIsSearchedFromExecutionsThatPassedIt) {
  EXPECT_GE(found_behind(6, 3, 3000), 5);
}

TEST(SamplingPortfolio, ADetourCostsNothingWhereNothingFails) {
  const Program program = build(ToyBuilder().shared("x").thread("a", "x = x + 1; x = x + 1", {.copies = 3}));
  std::vector<uint64_t> classes[2];
  for (const bool detours : {false, true}) {
    Arms arms = sampling_arms(3);
    if (detours) arms.push_back(std::make_unique<Detour>(3));
    Portfolio portfolio(std::move(arms));
    explore(portfolio, program, 400, [&](const Task&, const Execution& execution) {
      classes[detours].push_back(execution.class_hash);
    });
  }
  EXPECT_EQ(classes[0], classes[1]);
}

TEST(SamplingPortfolio, AnArmThatHasNoMoreLeaves) {
  Arms arms;
  arms.push_back(std::make_unique<RoundRobin>(5));
  arms.push_back(std::make_unique<Random>());
  Portfolio portfolio(std::move(arms));
  const ExploreResult result = explore(portfolio, bugs(), 500);
  EXPECT_EQ(result.end, ExploreResult::End::ScheduleLimit);
  EXPECT_EQ(portfolio.executions_of(0), 5u);
  EXPECT_EQ(portfolio.executions_of(1), 495u);
  EXPECT_FALSE(result.coverage.exhausted);
}

TEST(SamplingPortfolio, WithoutArmsLeftItEnds) {
  Arms arms;
  arms.push_back(std::make_unique<RoundRobin>(5));
  arms.push_back(std::make_unique<RoundRobin>(70));
  Portfolio portfolio(std::move(arms));
  const ExploreResult result = explore(portfolio, bugs(), 0);
  EXPECT_EQ(result.end, ExploreResult::End::SpaceExplored);
  EXPECT_EQ(result.tasks, 75u);
  EXPECT_FALSE(result.coverage.exhausted);
}

TEST(SamplingPortfolio, AnExhaustiveArmEndsTheSearch) {
  const Program program = build(ToyBuilder().shared("x").thread("a", "x = x + 1", {.copies = 3}));
  Dfs alone({.bound = DfsOptions::Bound::None});
  const uint64_t all = explore(alone, program, 0).tasks;
  ASSERT_EQ(all, 90u);  // 6! / 2^3
  Arms arms = sampling_arms(3);
  arms.push_back(std::make_unique<Dfs>(DfsOptions{.bound = DfsOptions::Bound::None}));
  const size_t dfs = arms.size() - 1;
  Portfolio portfolio(std::move(arms));
  const ExploreResult result = explore(portfolio, program, 0);
  EXPECT_EQ(result.end, ExploreResult::End::SpaceExplored);
  EXPECT_TRUE(result.coverage.exhausted);
  EXPECT_TRUE(result.coverage.bound.empty());
  EXPECT_EQ(portfolio.executions_of(dfs), all);
}

// Such executions have no class of their own. They count neither as new for their arm nor in the final
// statement.
TEST(SamplingPortfolio, ExecutionsThatWereCutOffAreNoInterleavings) {
  const Program program =
      build(ToyBuilder().shared("x", {.atomic = true}).thread("a", "while x == 0 { yield }", {.copies = 2}));
  Portfolio portfolio(sampling_arms(1));
  const ExploreResult result = explore(portfolio, program, 50);
  ASSERT_EQ(result.truncated, 50u);
  EXPECT_TRUE(result.coverage.statement.starts_with("portfolio: 0 different interleavings in 50 executions"))
      << result.coverage.statement;
}

TEST(SamplingPortfolio, ABoundedArmCoversItsBoundAndTheOthersGoOn) {
  const Program program = build(ToyBuilder().shared("x").thread("a", "x = x + 1", {.copies = 2}));
  Arms arms;
  arms.push_back(std::make_unique<Dfs>(DfsOptions{.bound = DfsOptions::Bound::Preemptions, .limit = 1}));
  arms.push_back(std::make_unique<Random>());
  Portfolio portfolio(std::move(arms));
  const ExploreResult result = explore(portfolio, program, 200);
  EXPECT_EQ(result.end, ExploreResult::End::ScheduleLimit);
  EXPECT_TRUE(result.coverage.exhausted);
  EXPECT_EQ(result.coverage.bound, "preemptions");
  EXPECT_EQ(result.coverage.completed, 1u);
  EXPECT_NE(result.coverage.statement.find("200 executions"), std::string::npos);
}

// The statement names the share of each arm, the sampling statement of one arm, and the meaningful
// guarantees.
TEST(SamplingPortfolio, SaysOnceWhatSamplingMissed) {
  const Program program =
      build(ToyBuilder().shared("x").thread("a", "for i in 0..20 { x = i }", {.copies = 3}));
  Portfolio portfolio(sampling_arms(1));
  const std::string statement = explore(portfolio, program, 600).coverage.statement;
  const auto count = [&](std::string_view words) {
    size_t found = 0;
    for (size_t at = statement.find(words); at != std::string::npos; at = statement.find(words, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(" by "), sampling_arms(1).size());
  EXPECT_EQ(count("What is rarer is not covered"), 1u);
  EXPECT_EQ(count("pct depth 1: "), 1u);
  EXPECT_EQ(count("pct depth 3: "), 0u);  // 3 agents and 60 steps: one in 10,800 executions
}

}  // namespace
}  // namespace slalom::sampling
