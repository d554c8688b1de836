// Findings and counts are the same for any number of workers.
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

TEST(Workers, AnyNumberOfThemFindsTheSame) {
  size_t found = 0;
  for (const StrategyKind& kind : all_kinds()) {
    for (uint64_t seed = 0; seed < 12 && !HasFailure(); ++seed) {
      const RandomProgram random = ProgramGenerator(seed).make(8);
      SCOPED_TRACE(kind.name + "\n" + random.text);
      const Program program = built(random.builder);
      for (const uint64_t schedules : {uint64_t{0}, uint64_t{150}}) {
        if (schedules == 0 && !kind.ends) continue;
        ExploreOptions options;
        options.schedules = schedules;
        const Explored alone = explore(toy_workers(program), *kind.make(), options);
        found += alone.result.found.size();
        for (const unsigned workers : {2u, 3u}) {
          options.workers = workers;
          const Explored together = explore(toy_workers(program), *kind.make(), options);
          expect_same(together.result, alone.result);
          EXPECT_EQ(together.traces, alone.traces) << workers << " workers";
        }
      }
    }
  }
  EXPECT_GT(found, 20u);
}

// Long searches of short executions use larger rounds, of the same size for any number of workers.
TEST(Workers, AnyNumberOfThemMakesTheSameLargeRounds) {
  for (const auto& [kind, program] : long_searches()) {
    SCOPED_TRACE(kind.name);
    std::vector<uint64_t> expected_rounds;  // tasks before each
    std::optional<ExploreResult> expected;
    for (const unsigned workers : {1u, 2u, 3u}) {
      const std::unique_ptr<Strategy> strategy = kind.make();
      ExploreOptions options;
      options.workers = workers;
      Explorer explorer(*strategy, toy_workers(program), options);
      std::vector<uint64_t> rounds;
      explorer.on_round = [&](const ExploreResult& so_far) {
        rounds.push_back(so_far.tasks);
        return true;
      };
      const ExploreResult result = explorer.run().value();
      if (!expected) {
        expected = result;
        expected_rounds = rounds;
        EXPECT_GT(result.tasks, 1000u);
        EXPECT_LT(rounds.size(), result.tasks / 64) << "no larger than in short searches";
      }
      expect_same(result, *expected);
      EXPECT_EQ(rounds, expected_rounds) << workers << " workers";
    }
  }
}

}  // namespace
}  // namespace slalom
