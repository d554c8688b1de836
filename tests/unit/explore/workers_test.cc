// Findings and counts are the same on any number of workers.
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

}  // namespace
}  // namespace slalom
