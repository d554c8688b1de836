// The strongest oracle for an exhaustive search: the exact number of its executions.
#include "explore/strategies/dfs.h"
#include "explore/strategies/dpor.h"
#include "unit/explore/search.h"

namespace slalom {
namespace {

struct Case {
  const char* program;
  int64_t n;
  uint64_t executions;
};

class OptimalDpor : public testing::TestWithParam<Case> {};

// Numbers published for optimal DPOR.
TEST_P(OptimalDpor, OneExecutionPerClass) {
  const Case& c = GetParam();
  for (unsigned workers : {1u, 2u}) {
    Dpor dpor;
    SearchOptions options;
    options.explore.workers = workers;
    options.detect = false;
    const Reached reached = search(example(c.program, {{"n", c.n}}), dpor, options);
    EXPECT_EQ(reached.result.executions, c.executions);
    EXPECT_EQ(reached.result.classes, c.executions);
    EXPECT_EQ(reached.result.blocked, 0u);
    EXPECT_TRUE(exhausted(reached.result));
  }
}

INSTANTIATE_TEST_SUITE_P(Published, OptimalDpor,
                         testing::Values(Case{"readers", 8, 256}, Case{"readers", 13, 8192},
                                         Case{"lastzero", 5, 64}, Case{"lastzero", 10, 3328},
                                         Case{"indexer", 12, 8}, Case{"indexer", 15, 4096},
                                         Case{"filesystem", 14, 2}, Case{"filesystem", 16, 8},
                                         Case{"filesystem", 18, 32}, Case{"filesystem", 19, 64}),
                         [](const auto& info) {
                           return std::string(info.param.program) + std::to_string(info.param.n);
                         });

uint64_t multinomial(uint64_t threads, uint64_t steps) {
  // Product of binomials, exact at every step.
  uint64_t result = 1;
  for (uint64_t total = 1, t = 0; t < threads; ++t)
    for (uint64_t i = 1; i <= steps; ++i, ++total) result = result * total / i;
  return result;
}

TEST(Dfs, ThreadsOfIndependentStepsGiveTheMultinomial) {
  for (const auto& [threads, steps] : {std::pair{1, 5}, {2, 1}, {2, 4}, {3, 3}, {4, 2}, {5, 1}}) {
    ToyBuilder b;
    b.shared("x", {.size = threads});
    std::string code;
    for (int i = 0; i < steps; ++i) code += "x[id] = " + std::to_string(i) + "\n";
    b.thread("t", code, {.copies = threads});
    for (const auto bound :
         {DfsOptions::Bound::None, DfsOptions::Bound::Preemptions, DfsOptions::Bound::Delays}) {
      Dfs dfs({.bound = bound});
      const Reached reached = search(built(b), dfs);
      EXPECT_EQ(reached.result.executions,
                multinomial(static_cast<uint64_t>(threads), static_cast<uint64_t>(steps)))
          << threads << " threads of " << steps;
      EXPECT_EQ(reached.result.classes, 1u);
      EXPECT_TRUE(exhausted(reached.result));
    }
  }
}

}  // namespace
}  // namespace slalom
