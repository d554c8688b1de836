#include <algorithm>
#include <numeric>

#include "explore/strategies/pct.h"
#include "sampling_support.h"

namespace slalom::sampling {
namespace {

constexpr uint64_t kRuns = 10'000;

// Depth 1: thread a must come before all others, so the bound 1/n is exact.
Program depth_one(int others) {
  return build(
      ToyBuilder().shared("x").thread("a", "assert x != 0").thread("b", "x = 1; x = 2", {.copies = others}));
}
// Depth 2: b must read between two neighbouring steps of a, which must have begun. 5 steps.
Program depth_two() {
  return build(ToyBuilder()
                   .shared("x")
                   .shared("y")
                   .thread("a", "y = 1; x = 1; x = 0; y = 2")
                   .thread("b", "assert x == 0"));
}
// Depth 3: b reads x between two steps of a, and y only after a has gone on. 6 steps.
Program depth_three() {
  return build(ToyBuilder()
                   .shared("x")
                   .shared("y")
                   .thread("a", "x = 1; x = 0; y = 1; y = 1")
                   .thread("b", "r = x; s = y; assert !(r && s)"));
}

uint64_t pct_hits(Program program, uint32_t depth, uint64_t k) {
  Pct pct({.seed = 5, .depth = depth, .k = k});
  return hits(pct, std::move(program), kRuns);
}

TEST(SamplingPct, FindsBugsOfItsDepthAsOftenAsPromised) {
  expect_close(pct_hits(depth_one(1), 1, 3), kRuns, 1.0 / 2);
  expect_close(pct_hits(depth_one(4), 1, 9), kRuns, 1.0 / 5);
  expect_close(pct_hits(depth_two(), 2, 5), kRuns, 1.0 / (2 * 5));
  expect_close(pct_hits(depth_three(), 3, 6), kRuns, 1.0 / (2 * 6 * 6));
}

TEST(SamplingPct, KeepsThePromiseWhenKIsTooLargeAndWhenTheDepthIs) {
  expect_at_least(pct_hits(depth_two(), 2, 10), kRuns, 1.0 / (2 * 10));
  expect_at_least(pct_hits(depth_two(), 3, 5), kRuns, 1.0 / (2 * 5 * 5));
  expect_at_least(pct_hits(depth_three(), 3, 12), kRuns, 1.0 / (2 * 12 * 12));
  expect_at_least(pct_hits(depth_three(), 4, 6), kRuns, 1.0 / (2 * 6 * 6 * 6));
}

TEST(SamplingPct, CannotFindWhatIsDeeper) {
  EXPECT_EQ(pct_hits(depth_two(), 1, 5), 0u);
  EXPECT_EQ(pct_hits(depth_three(), 1, 6), 0u);
  EXPECT_EQ(pct_hits(depth_three(), 2, 6), 0u);
}

// The paper's algorithm, evaluated for every order of priorities and every placement of change points, on
// threads that never block.
std::map<std::string, double> distribution_by_the_paper(std::vector<int> lengths, int depth, int k) {
  std::map<std::string, double> result;
  const int n = static_cast<int>(lengths.size());
  std::vector<int> ranks(lengths.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  double orders = 0;
  do {
    ++orders;
    std::vector<int> changes(static_cast<size_t>(depth - 1), 1);
    for (bool more = true; more;) {
      std::vector<int> priority;
      for (int rank : ranks) priority.push_back(depth + rank);
      std::vector<int> left = lengths;
      std::string order;
      while (std::any_of(left.begin(), left.end(), [](int l) { return l > 0; })) {
        int best = -1;
        for (int t = 0; t < n; ++t)
          if (left[t] > 0 && (best < 0 || priority[t] > priority[best])) best = t;
        --left[best];
        order += static_cast<char>('0' + best);
        for (int i = 1; i < depth; ++i)
          if (changes[i - 1] == static_cast<int>(order.size())) priority[best] = i;
      }
      ++result[order];
      more = false;
      for (int& change : changes) {
        if (change++ < k) {
          more = true;
          break;
        }
        change = 1;
      }
    }
  } while (std::next_permutation(ranks.begin(), ranks.end()));
  for (auto& [order, weight] : result) weight /= orders * std::pow(k, depth - 1);
  return result;
}

TEST(SamplingPct, SamplesExactlyThePapersDistribution) {
  const Program program = build(
      ToyBuilder().shared("x").thread("a", "x = 1; x = 1").thread("b", "x = 2").thread("c", "x = 3; x = 3"));
  for (uint32_t depth : {1, 2, 3})
    for (int k : {3, 5, 7}) {  // fewer than the program's steps, as many, more
      Pct pct({.seed = 3, .depth = depth, .k = static_cast<uint64_t>(k)});
      std::map<std::string, uint64_t> observed;
      explore(pct, program, 8000,
              [&](const Task&, const Execution& execution) { ++observed[order_of(execution)]; });
      expect_distribution(observed, distribution_by_the_paper({2, 1, 2}, static_cast<int>(depth), k));
    }
}

TEST(SamplingPct, ASpawnedAgentTakesAnyRank) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .thread("main", "spawn child; x = 1")
                                    .thread("child", "x = 2", {.start = false})
                                    .thread("other", "x = 3"));
  // Agents by id: 0 main, 1 its child, 2 other.
  std::map<std::string, uint64_t> observed;
  Pct pct({.seed = 9, .depth = 1});
  explore(pct, program, 6000,
          [&](const Task&, const Execution& execution) { ++observed[order_of(execution)]; });
  // Each of the six orders of priorities gives one of these. "2010" comes from the two orders that rank other
  // and the child first.
  expect_distribution(
      observed,
      {{"0012", 1.0 / 6}, {"0021", 1.0 / 6}, {"0102", 1.0 / 6}, {"2001", 1.0 / 6}, {"2010", 2.0 / 6}});
}

TEST(SamplingPct, KeepingAgentsChangesNothing) {
  const std::vector<Program> programs = {
      build(ToyBuilder()
                .shared("x")
                .sync("m", ToySyncKind::Mutex)
                .thread("a", "lock m; x = x + 1; unlock m; x = choose(3); yield; x = 5; x = 6")
                .thread("b", "x = 1; x = 2; lock m; x = 3; unlock m; yield; spawn c; x = 4")
                .thread("c", "x = 7; x = 8; x = 9", {.start = false})),
      // Here, fairness withholds options that come back while an agent runs.
      build(ToyBuilder().shared("x").thread("a", "for i in 0..4 { yield; x = i; x = id }", {.copies = 3}))};
  for (const auto& [program, insist] : {std::pair(programs[0], 0u), {programs[1], 0u}, {programs[1], 3u}}) {
    Pct pct({.seed = 2, .depth = 3, .k = 20, .insists = insist > 0});
    uint64_t compared = 0, saved = 0;
    ToyMachine machine(program);
    RunnerOptions asked_always;
    asked_always.insist = insist;
    asked_always.recording = Recording::Choices;
    Runner runner(machine, nullptr, asked_always);
    const auto compare = [&](const Task& task, const Execution& execution) {
      const Execution again = runner.run(task, *pct.walker(task));
      EXPECT_EQ(execution.schedule, again.schedule) << "execution " << task.index;
      EXPECT_EQ(execution.agent_ops, again.agent_ops);
      ++compared;
      saved += again.choice_points - execution.choice_points;
    };
    explore(pct, program, 1000, compare, 1, insist);
    EXPECT_EQ(compared, 1000u);
    EXPECT_GT(saved, compared);  // choice points were really passed
  }
}

TEST(SamplingPct, KeepsNoAgentWhereStepsAreNotChoicePoints) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .sync("m", ToySyncKind::Mutex)
                                    .thread("a", "lock m; x = 1; x = 2; unlock m; x = 3", {.copies = 2}));
  ExploreOptions options;
  options.schedules = 200;
  for (const auto where : {ChoicePolicy::Where::Everywhere, ChoicePolicy::Where::Sync}) {
    options.inputs.policy.where = where;
    Pct pct;
    Explorer explorer(pct, factory(program), options);
    uint64_t keeping = 0;  // tasks
    explorer.on_execution = [&](const Task& task, const Execution&) {
      keeping += hint_of<PctHint>(task).keeps;
    };
    ASSERT_TRUE(explorer.run().ok());
    EXPECT_EQ(keeping, where == ChoicePolicy::Where::Everywhere ? 200 - Sampler::kEpoch : 0);
  }
}

// Uses only pct's own means, without the runner's fairness.
TEST(SamplingPct, AgentsThatYieldLetTheOthersGoOn) {
  ToyMachine machine(build(ToyBuilder()
                               .shared("flag")
                               .thread("spin", "while flag == 0 { yield }", {.copies = 2})
                               .thread("set", "flag = 1")));
  RunnerOptions unfair;
  unfair.fair = false;
  Runner runner(machine, nullptr, unfair);
  Pct pct({.depth = 2});
  for (int i = 0; i < 500; ++i) {
    const Task task = pct.begin().value();
    const Execution execution = runner.run(task, *pct.walker(task));
    EXPECT_TRUE(std::holds_alternative<Exited>(execution.outcome));
    EXPECT_LT(execution.steps, 30u);
    pct.end(task, execution);
  }
}

// The bug needs one agent to run alone through a loop that yields.
TEST(SamplingPct, HalfOfTheExecutionsInsist) {
  const Program program = build(ToyBuilder()
                                    .shared("x", {.atomic = true})
                                    .thread("looks", "for i in 0..10 { r = x; yield }; assert x == 1")
                                    .thread("comes", "x = 1"));
  const auto failures = [&](bool insists) {
    Pct pct({.depth = 1, .insists = insists});
    uint64_t failed = 0;
    const auto count = [&](const Task&, const Execution& execution) {
      failed += std::holds_alternative<Faulted>(execution.outcome);
    };
    explore(pct, program, 400, count, 1, 20);
    return failed;
  };
  EXPECT_EQ(failures(false), 0u);
  // Half of the executions in which it has the higher priority.
  EXPECT_GT(failures(true), 70u);
  EXPECT_LT(failures(true), 130u);
}

TEST(SamplingPct, LearnsTheLargestKAndCountsFromThere) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .thread("a", "if x == 0 { for i in 0..20 { x = 0 } }")
                                    .thread("b", "x = 1; x = 2"));
  bool grew = false;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Pct pct({.seed = seed, .depth = 2});
    uint64_t largest = 0, in_effect = 0, counted = 0;
    const auto result = explore(pct, program, 300, [&](const Task& task, const Execution& execution) {
      if (task.index <= 1 || task.index % Sampler::kEpoch == 0) {
        if (in_effect != largest) counted = 0;
        grew |= in_effect != 0 && in_effect != largest;
        in_effect = largest;
      }
      EXPECT_EQ(hint_of<PctHint>(task).k, in_effect) << task.index;
      largest = std::max(largest, execution.steps);
      ++counted;
    });
    EXPECT_EQ(largest, 23u);
    EXPECT_NE(result.coverage.statement.find(fmt::format(": {} executions;", counted)), std::string::npos)
        << counted << " in: " << result.coverage.statement;
  }
  EXPECT_TRUE(grew);  // after the pilot, for some seed
}

TEST(SamplingPct, CoverageIsTheGuarantee) {
  Pct shallow({.depth = 1, .k = 5});
  EXPECT_EQ(shallow.coverage().statement, "pct depth 1: too few executions to say anything.");
  EXPECT_EQ(
      explore(shallow, depth_two(), 10).coverage.statement,
      "pct depth 1: 10 executions; a bug of depth 1 that needs at most 2 agents and 5 steps was missed with "
      "probability at most 0.098 %. Deeper bugs are not covered.");  // 2^-10 = 0.0977 %
  Pct deep({.depth = 3, .k = 1000, .n = 7});
  EXPECT_EQ(explore(deep, depth_two(), 2000).coverage.statement,
            "pct depth 3: 2,000 executions; a bug of depth 3 or less that needs at most 7 agents and 1,000 "
            "steps was missed "
            "with probability at most 100 %. Deeper bugs are not covered.");
  Pct learned({.depth = 2});  // the pilot has no change points and does not count: (1 - 1/10)^50 = 0.515 %
  EXPECT_EQ(explore(learned, depth_two(), 51).coverage.statement,
            "pct depth 2: 50 executions; a bug of depth 2 or less that needs at most 2 agents and 5 steps "
            "was missed with "
            "probability at most 0.52 %. Deeper bugs are not covered.");
}

}  // namespace
}  // namespace slalom::sampling
