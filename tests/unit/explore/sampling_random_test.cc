#include "explore/strategies/random.h"
#include "sampling_support.h"

namespace slalom::sampling {
namespace {

std::vector<Option> options_of(size_t count) {
  std::vector<Option> options;
  for (uint32_t i = 0; i < count; ++i) options.push_back({AgentId::initial(i), {}});
  return options;
}

Decision choose(Walker& walker, const ChoicePoint& point, std::span<const Option> options) {
  return std::get<Decision>(walker.choose(point, options, Execution{}));
}

TEST(SamplingRandom, EveryPairOfConsecutiveChoicesIsEquallyProbable) {
  const Random random({.seed = 7});
  for (size_t count : {2, 3, 5}) {
    const std::vector<Option> options = options_of(count);
    std::map<std::string, uint64_t> observed;
    std::map<std::string, double> expected;
    for (const Option& a : options)
      for (const Option& b : options)
        expected[a.agent.path() + b.agent.path()] = 1.0 / static_cast<double>(count * count);
    for (uint64_t index = 0; index < 5000; ++index) {
      Task task;
      task.index = index;
      const auto walker = random.walker(task);
      ChoicePoint point;
      point.kind = ChoiceKind::Running;
      const Decision first = choose(*walker, point, options);
      point.kind = ChoiceKind::Blocked;
      const Decision second = choose(*walker, point, options);
      ++observed[first.next.path() + second.next.path()];
    }
    expect_distribution(observed, expected);
  }
}

TEST(SamplingRandom, ValuesAreUniform) {
  const Random random;
  std::map<std::string, uint64_t> observed;
  std::map<std::string, double> expected;
  for (int value = 0; value < 6; ++value) expected[std::to_string(value)] = 1.0 / 6;
  const AgentId agent = AgentId::initial(3);
  for (uint64_t index = 0; index < 3000; ++index) {
    Task task;
    task.index = index;
    ChoicePoint point;
    point.kind = ChoiceKind::Data;
    point.current = agent;
    point.arity = 6;
    const Decision decision = choose(*random.walker(task), point, {});
    EXPECT_EQ(decision.next, agent);
    ++observed[std::to_string(decision.value)];
  }
  expect_distribution(observed, expected);
}

TEST(SamplingRandom, WholeExecutionsHaveTheProbabilityOfTheirChoices) {
  const Program program = build(ToyBuilder().shared("x").thread("a", "x = 1").thread("b", "x = 2; x = 3"));
  std::map<std::string, uint64_t> observed;
  Random random({.seed = 11});
  explore(random, program, 4000,
          [&](const Task&, const Execution& execution) { ++observed[order_of(execution)]; });
  expect_distribution(observed, {{"011", 0.5}, {"101", 0.25}, {"110", 0.25}});
}

// Adds the probability of each order of the agents' operations: at each step, agents with remaining
// operations are equally probable.
void add_orders(std::string order, std::vector<unsigned> left, double chance,
                std::map<std::string, double>& all) {
  const auto able = std::count_if(left.begin(), left.end(), [](unsigned one) { return one > 0; });
  if (able == 0) all[order] = chance;
  for (size_t agent = 0; agent < left.size(); ++agent) {
    if (left[agent] == 0) continue;
    --left[agent];
    add_orders(order + static_cast<char>('0' + agent), left, chance / static_cast<double>(able), all);
    ++left[agent];
  }
}

std::map<std::string, uint64_t> sample(const ToyBuilder& builder, uint64_t executions) {
  std::map<std::string, uint64_t> observed;
  Random random({.seed = 4});
  explore(random, build(builder), executions,
          [&](const Task&, const Execution& execution) { ++observed[order_of(execution)]; });
  return observed;
}

TEST(SamplingRandom, EveryChoicePointIsDrawn) {
  std::map<std::string, double> two, three;
  add_orders("", {3, 3}, 1, two);
  ASSERT_EQ(two.size(), 20u);
  expect_distribution(
      sample(ToyBuilder().shared("x").thread("a", "x = 1; x = 2; x = 3", {.copies = 2}), 20'000), two);
  add_orders("", {2, 2, 2}, 1, three);
  ASSERT_EQ(three.size(), 90u);
  expect_distribution(sample(ToyBuilder().shared("x").thread("a", "x = 1; x = 2", {.copies = 3}), 40'000),
                      three);
}

// The set of agents that can run changes on the way.
TEST(SamplingRandom, WhatWasDrawnAheadEndsWhereOthersCanRun) {
  const ToyBuilder builder = ToyBuilder()
                                 .sync("m", ToySyncKind::Mutex)
                                 .thread("a", "lock m; unlock m")
                                 .thread("b", "lock m; unlock m")
                                 .shared("x")
                                 .thread("c", "x = 1");
  // While one agent has the lock, the choice is between it and the third one.
  expect_distribution(sample(builder, 20'000), {{"00112", 1.0 / 24},
                                                {"00121", 1.0 / 24},
                                                {"00211", 1.0 / 12},
                                                {"02011", 1.0 / 6},
                                                {"11002", 1.0 / 24},
                                                {"11020", 1.0 / 24},
                                                {"11200", 1.0 / 12},
                                                {"12100", 1.0 / 6},
                                                {"20011", 1.0 / 6},
                                                {"21100", 1.0 / 6}});
}

// As part of a portfolio, the walker may be asked at every choice point, whatever it has drawn ahead.
TEST(SamplingRandom, IsTheSameWhereEveryChoiceIsRecorded) {
  struct Recorded : Random {
    using Random::Random;
    Recording recording() const override { return Recording::Choices; }
  };
  const Program program = build(ToyBuilder()
                                    .sync("m", ToySyncKind::Mutex)
                                    .shared("x")
                                    .thread("a", "lock m; x = 1; unlock m; x = 2", {.copies = 2})
                                    .thread("b", "x = 3; x = 4"));
  const auto switches = [&](Random&& random) {
    std::vector<std::vector<Switch>> all;
    explore(random, program, 300,
            [&](const Task&, const Execution& execution) { all.push_back(execution.schedule.switches); });
    return all;
  };
  EXPECT_EQ(switches(Random({.seed = 3})), switches(Recorded({.seed = 3})));
}

TEST(SamplingRandom, CoverageSaysWhatWasNotSeen) {
  const Program program = build(ToyBuilder().shared("x").thread("a", "x = 1", {.copies = 2}));
  Random random;
  EXPECT_EQ(random.coverage().statement, "random: too few executions to say anything.");
  const Coverage coverage = explore(random, program, 1000).coverage;
  EXPECT_FALSE(coverage.exhausted);
  EXPECT_NE(coverage.statement.find("1,000 executions; what shows in at least 0.3 % of such executions"),
            std::string::npos)
      << coverage.statement;
}

}  // namespace
}  // namespace slalom::sampling
