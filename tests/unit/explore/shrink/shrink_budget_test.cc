// Checks that shrinking claims no more than its budget let it prove.
#include "unit/explore/shrink/shrink_bench.h"

namespace slalom {
namespace {

TEST(Shrink, TheBudgetOfLongExecutionsEndsItAndIsSaid) {
  size_t cut_short = 0, whole = 0;
  for_findings(80, [&](const Program& program, const Found& found) {
    for (const uint64_t cost : {0, 2000, 20'000'000}) {
      const Shrunk shrunk =
          shrink(program, found.schedule, found.verdict.title, {.long_steps = 1, .long_cost = cost});
      EXPECT_TRUE(shows(Bench(program).run(shrunk.schedule), found.verdict.title));
      EXPECT_EQ(shrunk.cut_short, shrunk.proof == Shrunk::Proof::None);
      cut_short += shrunk.cut_short;
      whole += !shrunk.cut_short;
    }
  });
  EXPECT_GT(cut_short, 10u);
  EXPECT_GT(whole, 20u);
}

TEST(Shrink, WithoutABudgetNothingIsClaimed) {
  size_t findings = 0;
  for_findings(80, [&](const Program& program, const Found& found) {
    for (const uint64_t executions : {1, 2, 5}) {
      const Shrunk shrunk = shrink(program, found.schedule, found.verdict.title, {.executions = executions});
      EXPECT_TRUE(shows(Bench(program).run(shrunk.schedule), found.verdict.title));
      if (shrunk.proof == Shrunk::Proof::None) ++findings;
      EXPECT_TRUE(executions > 1 || shrunk.proof == Shrunk::Proof::None);
    }
  });
  EXPECT_GT(findings, 20u);
}

TEST(Shrink, ABudgetOfStepsEndsItToo) {
  size_t given_up = 0;
  for_findings(80, [&](const Program& program, const Found& found) {
    const Shrunk free = shrink(program, found.schedule, found.verdict.title);
    const Shrunk bound = shrink(program, found.schedule, found.verdict.title, {.steps = 10});
    EXPECT_TRUE(shows(Bench(program).run(bound.schedule), found.verdict.title));
    EXPECT_LE(bound.executions, free.executions);
    given_up += bound.proof == Shrunk::Proof::None && free.proof != Shrunk::Proof::None;
  });
  EXPECT_GT(given_up, 20u);
}

TEST(Shrink, AProofThatWouldBeTooLargeIsNotClaimed) {
  size_t proved = 0;
  for_findings(300, [&](const Program& program, const Found& found) {
    const auto with = [&](uint64_t footprints) {
      return shrink(program, found.schedule, found.verdict.title, {.minimum_footprints = footprints});
    };
    const Shrunk unproved = with(0);
    if (unproved.preemptions == 0) return;  // there is no smaller number
    EXPECT_EQ(unproved.proof, Shrunk::Proof::Minimal);
    proved += with(5'000'000).proof == Shrunk::Proof::Minimum;
  });
  EXPECT_GT(proved, 10u);
}

}  // namespace
}  // namespace slalom
