// Checks the orders that shrinking names as the ones that a bug needs.
#include "unit/explore/shrink/shrink_bench.h"

namespace slalom {
namespace {

// Returns whether the first operation came first. The agents' own counts identify them; an operation that
// never came is last.
bool first_comes(const Execution& execution, const OperationPlace& a, const OperationPlace& b) {
  std::map<AgentId, uint64_t> done;
  for (const ChoiceRecord& record : execution.choices) {
    if (record.kind == ChoiceKind::Data) continue;
    const uint64_t ops = done[record.taken.agent]++;
    if (record.taken.agent == a.agent && ops == a.ops) return true;
    if (record.taken.agent == b.agent && ops == b.ops) return false;
  }
  return false;
}

TEST(Shrink, AConstraintTurnedRoundLosesTheBug) {
  size_t constraints = 0;
  for_findings(120, [&](const Program& program, const Found& found) {
    const std::string& title = found.verdict.title;
    const Shrunk shrunk = shrink(program, found.schedule, title);
    if (shrunk.constraints.empty()) return;
    const Execution own = Bench(program).run(shrunk.schedule);
    std::vector<size_t> lost(shrunk.constraints.size());
    Dfs dfs({.bound = DfsOptions::Bound::None, .schedules = DfsOptions::Schedules::All});
    ExploreOptions options;
    options.inputs.max_steps = kMaxSteps;
    Explorer explorer(dfs, toy_workers(program), options);
    explorer.on_execution = [&](const Task&, const Execution& execution) {
      for (size_t i = 0; i < shrunk.constraints.size(); ++i)
        lost[i] += !shows(execution, title) &&
                   first_comes(execution, shrunk.constraints[i].after, shrunk.constraints[i].before);
    };
    ASSERT_TRUE(explorer.run().ok());
    for (size_t i = 0; i < shrunk.constraints.size(); ++i) {
      const auto& [before, after] = shrunk.constraints[i];
      EXPECT_FALSE(first_comes(own, after, before)) << "it is not even true of the schedule itself";
      EXPECT_NE(before.agent, after.agent);
      EXPECT_GT(lost[i], 0u) << "no schedule with the pair turned round is without the bug";
      ++constraints;
    }
  });
  EXPECT_GT(constraints, 15u);
}

// The value of a data choice is part of the schedule, not of the order.
TEST(Shrink, ConstraintsAreNotAboutValues) {
  ToyBuilder b;
  b.shared("x", {.atomic = true}).shared("y", {.atomic = true});
  b.thread("a", "y = 2\nx = 1").thread("b", "r = choose(3)\ny = 1\nassert r != 2");
  const Program program = built(b);
  Dfs dfs;
  const std::vector<Found> found = explore(toy_workers(program), dfs, {}).result.found;
  ASSERT_EQ(found.size(), 1u);
  const Shrunk shrunk = shrink(program, found[0].schedule, found[0].verdict.title);
  EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimum);
  EXPECT_EQ(shrunk.deviations, 1u) << "the value 2";
  EXPECT_EQ(shrunk.preemptions, 0u);
  EXPECT_TRUE(shrunk.constraints.empty()) << "no order matters to it";
}

// The second load can only come before the store if the first one does. The constraint must name the first.
TEST(Shrink, AnOrderThatCannotBeTurnedRoundAloneIsNotNamed) {
  ToyBuilder b;
  b.shared("x").thread("writer", "x = 1").thread("reader", "r = x\ns = x\nassert r + s != 2");
  const Program program = built(b);
  Dfs dfs;
  const std::vector<Found> found = explore(toy_workers(program), dfs, {}).result.found;
  const auto failure = std::find_if(found.begin(), found.end(),
                                    [](const Found& one) { return one.verdict.kind == BugKind::Assertion; });
  ASSERT_NE(failure, found.end());
  const Shrunk shrunk = shrink(program, failure->schedule, failure->verdict.title);
  ASSERT_EQ(shrunk.constraints.size(), 1u);
  EXPECT_EQ(shrunk.constraints[0].before.op.kind, OpKind::Store);
  EXPECT_EQ(shrunk.constraints[0].after.ops, 0u) << "the first load";
}

TEST(Shrink, ALostUpdateNeedsTwoOrders) {
  ToyBuilder b;
  b.shared("x").thread("worker", "x = x + 1", {.copies = 2}).final_check("x == 2", "an update was lost");
  const Program program = built(b);
  Random random;
  ExploreOptions options;
  options.schedules = 50;
  const Explored explored = explore(toy_workers(program), random, options);
  for (const Found& found : explored.result.found) {
    if (found.verdict.kind != BugKind::Assertion) continue;
    const Shrunk shrunk = shrink(program, found.schedule, found.verdict.title);
    EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimum);
    EXPECT_EQ(shrunk.preemptions, 1u);
    // Each load comes before the other thread's store.
    ASSERT_EQ(shrunk.constraints.size(), 2u);
    for (const Shrunk::Constraint& constraint : shrunk.constraints) {
      EXPECT_EQ(constraint.before.op.kind, OpKind::Load);
      EXPECT_EQ(constraint.after.op.kind, OpKind::Store);
    }
    return;
  }
  FAIL() << "the lost update was not found";
}

}  // namespace
}  // namespace slalom
