#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "sampling_support.h"

namespace slalom::sampling {
namespace {

std::map<std::string, uint64_t> sample(Program program, uint64_t executions) {
  std::map<std::string, uint64_t> observed;
  Pos pos({.seed = 4});
  explore(pos, std::move(program), executions,
          [&](const Task&, const Execution& execution) { ++observed[order_of(execution)]; });
  return observed;
}

// b's operation keeps its priority while a's operations do not conflict with it. It comes last if its
// priority is the lowest of three.
TEST(SamplingPos, AnIndependentOperationIsNotDrawnAgain) {
  const std::map<std::string, double> kept = {{"100", 1.0 / 2}, {"010", 1.0 / 6}, {"001", 1.0 / 3}};
  expect_distribution(
      sample(build(ToyBuilder().shared("x").shared("y").thread("a", "x = 1; x = 2").thread("b", "y = 1")),
             6000),
      kept);
  expect_distribution(
      sample(build(ToyBuilder().shared("x").thread("a", "r = x; r = x").thread("b", "r = x")), 6000), kept);
}

// After each conflict it gets a new chance: one half each time.
TEST(SamplingPos, AConflictingOperationIsDrawnAgain) {
  const std::map<std::string, double> halves = {{"100", 0.5}, {"010", 0.25}, {"001", 0.25}};
  expect_distribution(
      sample(build(ToyBuilder().shared("x").thread("a", "x = 1; x = 2").thread("b", "x = 3")), 6000), halves);
  expect_distribution(
      sample(build(ToyBuilder().shared("x").thread("a", "x = 1; x = 2").thread("b", "r = x")), 6000), halves);
}

TEST(SamplingPos, FindsWhatAComesLastBugNeedsAndARandomWalkMisses) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .shared("y")
                                    .thread("long", "for i in 0..20 { y = i }; assert x != 0 \"x is late\"")
                                    .thread("short", "x = 1"));
  constexpr uint64_t kRuns = 4000;
  Pos pos;
  Random random;
  // It comes late if its priority is lower than those of the 21 operations of the long thread.
  expect_close(hits(pos, program, kRuns), kRuns, 1.0 / 22);
  EXPECT_EQ(hits(random, program, kRuns), 0u);  // 2^-21 each
}

TEST(SamplingPos, AllOrdersOfConflictingOperationsOfManyAgentsAreEven) {
  std::map<std::string, double> even;
  std::string order = "0123";
  do even[order] = 1.0 / 24;
  while (std::next_permutation(order.begin(), order.end()));
  expect_distribution(sample(build(ToyBuilder().shared("x").thread("a", "x = id", {.copies = 4})), 6000),
                      even);
}

TEST(SamplingPos, BlockingAndYieldingProgramsEnd) {
  const Program program =
      build(ToyBuilder()
                .shared("ready")
                .shared("flag")
                .sync("m", ToySyncKind::Mutex)
                .sync("c", ToySyncKind::Condvar)
                .thread("waiter", "lock m; while ready == 0 { wait c m }; unlock m", {.copies = 2})
                .thread("waker", "lock m; ready = 1; broadcast c; unlock m; flag = 1")
                .thread("spin", "while flag == 0 { yield }"));
  Pos pos;
  const ExploreResult result = explore(pos, program, 1000);
  EXPECT_EQ(result.executions, 1000u);
  EXPECT_TRUE(result.found.empty());
}

}  // namespace
}  // namespace slalom::sampling
