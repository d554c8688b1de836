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
