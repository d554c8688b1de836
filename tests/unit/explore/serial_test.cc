// Serial orders of whole calls. The programs write down which calls ran in which order, so that each order
// has a final state of its own: as many executions as states means that no order was run twice.
#include "explore/strategies/serial.h"

#include "explore/strategies/free_runs.h"
#include "unit/explore/search.h"

namespace slalom {
namespace {

// A call is "log = log * 10 + n", or begins with it: calls begin where `log` is loaded. "idle" makes no
// calls.
std::vector<Place> calls_of(const ToyProgram& program) {
  std::vector<Place> places;
  for (uint32_t pc = 0; pc < program.code.size(); ++pc)
    if (program.code[pc].kind == OpKind::Load && program.blocks[program.locations[pc].block].name != "idle")
      places.push_back(toy_place(pc));
  return places;
}

struct Orders {
  uint64_t executions = 0;
  std::set<uint64_t> states;
  bool exhausted = false;
};

Orders run(const std::shared_ptr<const ToyProgram>& program, Serial& serial) {
  SearchOptions options;
  options.explore.inputs.policy = {.where = ChoicePolicy::Where::Nowhere, .places = calls_of(*program)};
  options.explore.checkpoint_every = 0;
  options.detect = false;
  const Reached reached = search(program, serial, options);
  return {reached.result.tasks, reached.states, reached.result.coverage.exhausted};
}

Orders run(const ToyBuilder& builder, SerialOptions options = {}) {
  const auto program = built(builder);
  options.calls = calls_of(*program);
  Serial serial(std::move(options));
  return run(program, serial);
}

std::string calls(int count, int number) {
  std::string code;
  for (int i = 0; i < count; ++i) code += "log = log * 10 + " + std::to_string(number) + "\n";
  return code;
}

ToyBuilder with_log() {
  ToyBuilder b;
  b.shared("log");
  return b;
}

TEST(Serial, RunsEachOrderOfWholeCallsOnce) {
  // The number of orders is the multinomial coefficient, although each call has two operations.
  for (const auto& [counts, orders] :
       {std::pair{std::vector{1, 1}, 2}, {{3, 3}, 20}, {{2, 1, 1}, 12}, {{4}, 1}, {{2, 2, 2}, 90}}) {
    ToyBuilder b = with_log();
    for (size_t i = 0; i < counts.size(); ++i)
      b.thread("t" + std::to_string(i), calls(counts[i], static_cast<int>(i) + 1));
    const Orders all = run(b);
    EXPECT_EQ(all.executions, static_cast<uint64_t>(orders));
    EXPECT_EQ(all.states.size(), all.executions);
    EXPECT_TRUE(all.exhausted);
  }
}

TEST(Serial, WhatPrecedesTheFirstCallIsNoCall) {
  ToyBuilder b = with_log();
  b.shared("x").thread("one", "x = 1\n" + calls(2, 1)).thread("two", "x = 2\n" + calls(1, 2));
  EXPECT_EQ(run(b).executions, 3u);
}

// The waiting call may begin before the other thread's call that it waits for. It is left there, and ends
// before or after that thread's second call.
TEST(Serial, CallsThatWaitOverlap) {
  ToyBuilder b = with_log();
  b.sync("s", ToySyncKind::Semaphore)
      .thread("waits", calls(1, 1) + "down s\n")
      .thread("posts", calls(1, 2) + "up s\n" + calls(1, 3));
  const Orders all = run(b);
  // 1 before 2; 2 1 3; 2 3 1. After 1 waits and 2 has posted, 1 may end before or after 3.
  EXPECT_EQ(all.executions, 4u);
  EXPECT_EQ(all.states.size(), 3u);
}

// As a CPU without a flow, "idle" waits until an interrupt wakes it, and then does its work.
TEST(Serial, InterruptsArriveAtOnceUnlessTheirWorkCounts) {
  ToyBuilder b = with_log();
  b.shared("x")
      .sync("s", ToySyncKind::Semaphore)
      .thread("one", "x = 1\n" + calls(2, 1))
      .thread("two", "x = 1\n" + calls(1, 2))
      .thread("idle", "down s\n" + calls(1, 9))
      .interrupt("tick", "idle", "up s\n");
  const Orders at_once = run(b);
  EXPECT_EQ(at_once.executions, 3u);
  EXPECT_EQ(at_once.states.size(), 3u);

  AgentId tick;
  const auto program = built(b);
  for (const ToyInitialAgent& agent : program->agents)
    if (agent.interrupts) tick = agent.id;
  ASSERT_TRUE(tick);
  // The work comes before, between or after the three calls.
  const Orders counted = run(b, {.calls = {}, .working_interrupts = {tick}});
  EXPECT_EQ(counted.executions, 12u);
  EXPECT_EQ(counted.states.size(), 12u);
  EXPECT_TRUE(counted.exhausted);
}

TEST(Serial, LimitsEndTheSearchWithoutAClaim) {
  ToyBuilder b = with_log();
  b.thread("one", calls(3, 1)).thread("two", calls(3, 2));
  const Orders few = run(b, {.calls = {}, .working_interrupts = {}, .most_orders = 7});
  EXPECT_EQ(few.executions, 7u);
  EXPECT_FALSE(few.exhausted);
  // Each order has 12 operations; the order that exceeds the limit is the last one.
  const Orders short_ones =
      run(b, {.calls = {}, .working_interrupts = {}, .most_orders = 100, .most_steps = 30});
  EXPECT_EQ(short_ones.executions, 3u);
  EXPECT_FALSE(short_ones.exhausted);
  const Orders exactly = run(b, {.calls = {}, .working_interrupts = {}, .most_orders = 20});
  EXPECT_EQ(exactly.executions, 20u);
  EXPECT_TRUE(exactly.exhausted);
}

TEST(Serial, GoesOnWhereItWasSaved) {
  ToyBuilder b = with_log();
  b.thread("one", calls(3, 1)).thread("two", calls(3, 2));
  const auto program = built(b);
  Serial first({.calls = calls_of(*program), .working_interrupts = {}, .most_orders = 8});
  const Orders before = run(program, first);
  ByteWriter saved;
  first.save(saved);
  Serial rest({.calls = calls_of(*program), .working_interrupts = {}});
  ByteReader in(saved.bytes());
  ASSERT_TRUE(rest.load(in) && in.at_end());
  const Orders after = run(program, rest);
  EXPECT_EQ(before.executions + after.executions, 20u);
  std::set<uint64_t> states = before.states;
  states.insert(after.states.begin(), after.states.end());
  EXPECT_EQ(states.size(), 20u);
  EXPECT_TRUE(after.exhausted);
}

TEST(FreeRuns, TheSeedDrawsTheFirstAgentAndItsTurn) {
  const FreeRuns runs({.seed = 7, .longest_turn = 100});
  const std::vector<Option> options{{AgentId::initial(0), {}}, {AgentId::initial(1), {}}};
  const Execution nothing;
  std::set<AgentId> first;
  uint32_t shortest = 100, longest = 1;
  for (uint64_t i = 0; i < 2'000; ++i) {
    Task task;
    task.index = i;
    const auto choose = [&] {
      return std::get<Decision>(runs.walker(task)->choose(ChoicePoint{}, options, nothing));
    };
    const Decision decision = choose();
    const Decision again = choose();
    EXPECT_EQ(decision.next, again.next);
    EXPECT_EQ(decision.forecast.keep, again.forecast.keep);
    first.insert(decision.next);
    shortest = std::min(shortest, decision.forecast.keep);
    longest = std::max(longest, decision.forecast.keep);
  }
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(shortest, 1u);
  EXPECT_EQ(longest, 100u);
}

TEST(FreeRuns, AMachineThatNeedsControlSaysSo) {
  ToyMachine machine(built(with_log().thread("one", calls(1, 1))));
  EXPECT_FALSE(machine.reset({.control = Control::None}).ok());
  EXPECT_TRUE(machine.reset({.control = Control::Whole}).ok());
}

}  // namespace
}  // namespace slalom
