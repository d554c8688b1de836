#include "explore/strategies/dfs.h"
#include "explore/strategies/surw.h"
#include "sampling_support.h"

namespace slalom::sampling {
namespace {

using Interesting = SurwOptions::Interesting;

// Returns every order that an exhaustive search finds, all with the same probability.
std::map<std::string, double> uniform_orders(Program program) {
  std::map<std::string, double> orders;
  Dfs dfs({.bound = DfsOptions::Bound::None});
  explore(dfs, std::move(program), 0,
          [&](const Task&, const Execution& execution) { orders[order_of(execution)] = 0; });
  for (auto& [order, probability] : orders) probability = 1 / static_cast<double>(orders.size());
  return orders;
}

void expect_uniform(Program program, size_t interleavings, uint64_t executions) {
  const auto expected = uniform_orders(program);
  ASSERT_EQ(expected.size(), interleavings);
  std::map<std::string, uint64_t> observed;
  Surw surw({.seed = 6});
  explore(surw, program, executions, [&](const Task& task, const Execution& execution) {
    if (task.index > 0) ++observed[order_of(execution)];  // the pilot has no counts
  });
  expect_distribution(observed, expected);
}

TEST(SamplingSurw, UniformOverInterleavings) {
  expect_uniform(
      build(ToyBuilder().shared("x").thread("a", "x = 1; x = 2; x = 3").thread("b", "x = 4; x = 5")), 10,
      5000);
  expect_uniform(build(ToyBuilder().shared("x").thread("a", "for i in 0..12 { x = i }").thread("b", "x = 9")),
                 13, 5000);
  expect_uniform(build(ToyBuilder()
                           .shared("x")
                           .thread("a", "x = x + 1", {.copies = 2})
                           .thread("b", "x = 4; x = 5; x = 6")),
                 210, 20'000);
}

TEST(SamplingSurw, UniformWithAgentsThatSpawnAgents) {
  // main has 1 step, then two trees: the rest of main (2), and the child (1) that makes a grandchild (2) and
  // goes on (1).
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .thread("main", "spawn child; x = 1; x = 2")
                                    .thread("child", "spawn grandchild; x = 3", {.start = false})
                                    .thread("grandchild", "x = 4; x = 5", {.start = false})
                                    .thread("other", "x = 6"));
  // Linear extensions of a forest of 8: 8! over the product of the sizes of all subtrees.
  const size_t count = 40320 / (7 * 2 * 1 * 4 * 1 * 2 * 1 * 1);
  expect_uniform(program, count, 40'000);
}

// Returns the order of the agents' operations on the interesting object.
std::string order_on(ObjectId object, const Execution& execution) {
  std::string order;
  for (size_t i = 0; i < execution.choices.size(); ++i)
    for (const Option& option : execution.options_at(i))
      if (option.agent == execution.choices[i].taken.agent && option.op.object == object)
        order += option.agent.path() + " ";
  return order;
}

TEST(SamplingSurw, UniformOverTheOperationsOnOneObject) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .shared("y")
                                    .shared("z")
                                    .thread("a", "x = 1; for i in 0..7 { y = i }; x = 2")
                                    .thread("b", "for i in 0..15 { z = i }; x = 3; x = 4"));
  for (const Interesting interesting : {Interesting::OneObject, Interesting::Alternate}) {
    std::map<std::string, uint64_t> observed;
    Surw surw({.seed = 8, .interesting = interesting});
    explore(surw, program, 6000, [&](const Task& task, const Execution& execution) {
      const ObjectId object = hint_of<SurwHint>(task).object;
      EXPECT_EQ(object.raw != 0,
                task.index > 0 && (interesting == Interesting::OneObject || task.index % 2 == 1));
      if (object.raw != 0) ++observed[order_on(object, execution)];
    });
    std::map<std::string, double> expected;
    for (const char* order : {"1 1 2 2 ", "1 2 1 2 ", "1 2 2 1 ", "2 1 1 2 ", "2 1 2 1 ", "2 2 1 1 "})
      expected[order] = 1.0 / 6;
    expect_distribution(observed, expected);
  }
}

TEST(SamplingSurw, UniformOnOneObjectWithSpawnedAgents) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .shared("y")
                                    .thread("main", "y = 1; spawn child; x = 1; y = 2; x = 2")
                                    .thread("child", "x = 3; x = 4", {.start = false})
                                    .thread("other", "x = 5"));
  std::map<std::string, uint64_t> observed;
  Surw surw({.seed = 8, .interesting = Interesting::OneObject});
  explore(surw, program, 9000, [&](const Task& task, const Execution& execution) {
    if (task.index > 0) ++observed[order_on(hint_of<SurwHint>(task).object, execution)];
  });
  std::map<std::string, double> expected;
  std::vector<std::string> order = {"1 ", "1 ", "1.1 ", "1.1 ", "2 "};
  do expected[order[0] + order[1] + order[2] + order[3] + order[4]] = 1.0 / 30;
  while (std::next_permutation(order.begin(), order.end()));
  expect_distribution(observed, expected);
}

// Only an uneven draw finds this: the short thread's operation after nearly all operations of the long
// thread.
TEST(SamplingSurw, ShortAgentsAreNotFavoured) {
  const Program program = build(ToyBuilder()
                                    .shared("x")
                                    .shared("y")
                                    .thread("long", "for i in 0..20 { y = i }; assert x != 0")
                                    .thread("b", "x = 1"));
  Surw surw;
  expect_close(hits(surw, program, 2000), 2000, 1.0 / 22);
}

TEST(SamplingSurw, ProgramsThatBlockSpinOrYieldEnd) {
  const std::vector<Program> programs = {
      build(ToyBuilder()
                .shared("ready")
                .sync("m", ToySyncKind::Mutex)
                .sync("c", ToySyncKind::Condvar)
                .thread("waiter", "lock m; while ready == 0 { wait c m }; unlock m", {.copies = 2})
                .thread("waker", "lock m; ready = 1; broadcast c; unlock m")),
      build(ToyBuilder()
                .shared("x")
                .shared("flag")
                .thread("a", "x = 1; flag = 1")
                .thread("b", "while flag == 0 { yield }; x = 2")),
      build(ToyBuilder()
                .shared("x")
                .shared("flag")
                .thread("a", "x = 1; flag = 1")
                .thread("b", "while flag == 0 { }; x = 2")),
      build(ToyBuilder()
                .shared("x")
                .thread("main", "h = spawn(child); g = spawn(child); x = 1; join(h); join(g); x = 2")
                .thread("child", "x = x + 1", {.start = false}))};
  for (const Program& program : programs)
    for (const Interesting interesting : {Interesting::All, Interesting::OneObject, Interesting::Alternate}) {
      Surw surw({.interesting = interesting});
      const ExploreResult result = explore(surw, program, 500);
      EXPECT_EQ(result.executions, 500u);
      EXPECT_TRUE(result.found.empty());
    }
}

TEST(SamplingSurw, AProgramThatAlwaysFailsIsStillSampled) {
  Surw surw;
  const ExploreResult result =
      explore(surw, build(ToyBuilder().shared("x").thread("a", "x = 1; assert 0", {.copies = 3})), 200);
  EXPECT_EQ(result.executions, 200u);
  EXPECT_EQ(result.found.size(), 1u);
}

}  // namespace
}  // namespace slalom::sampling
