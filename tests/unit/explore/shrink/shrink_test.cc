// Checks the claims of shrunk schedules by independent means: another walker, and plain depth-first search.
#include "explore/shrink/shrink.h"

#include "unit/explore/shrink/shrink_bench.h"

namespace slalom {
namespace {

// Returns the default choice: the running agent, else the next one in cyclic order of ids.
AgentId undisturbed(ChoiceKind kind, AgentId current, std::span<const Option> options) {
  std::set<AgentId> able;
  for (const Option& option : options) able.insert(option.agent);
  if (kind == ChoiceKind::Running && able.contains(current)) return current;
  const auto next = able.upper_bound(current);
  return next == able.end() ? *able.begin() : *next;
}

// The place of a decision: agents count their own operations.
using DecisionPlace = std::tuple<AgentId, uint64_t, bool>;

using Deviations = std::map<DecisionPlace, uint64_t>;  // the agent, or the value

Deviations deviations_of(const Execution& execution) {
  Deviations deviations;
  for (size_t i = 0; i < execution.choices.size(); ++i) {
    const ChoiceRecord& record = execution.choices[i];
    const bool data = record.kind == ChoiceKind::Data;
    const DecisionPlace at{record.current, record.current_ops, data};
    if (data ? record.taken.value != 0
             : record.taken.agent != undisturbed(record.kind, record.current, execution.options_at(i)))
      deviations[at] = data ? record.taken.value : record.taken.agent.raw;
  }
  return deviations;
}

class Deviating : public Walker {
 public:
  explicit Deviating(const Deviations& deviations) : deviations_(deviations) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    const bool data = point.kind == ChoiceKind::Data;
    const auto at = deviations_.find({point.current, point.current_ops, data});
    if (data) return Decision{point.current, at == deviations_.end() ? 0 : static_cast<uint32_t>(at->second)};
    if (at != deviations_.end())
      for (const Option& option : options)
        if (option.agent.raw == at->second) return Decision{option.agent};
    return Decision{undisturbed(point.kind, point.current, options)};
  }

 private:
  const Deviations& deviations_;
};

uint64_t preemptions_of(const Execution& execution) {
  uint64_t preemptions = 0;
  for (const ChoiceRecord& record : execution.choices)
    preemptions += record.kind == ChoiceKind::Running && record.taken.agent != record.current;
  return preemptions;
}

// `long_steps`: 1: every execution is a long one.
void keeps_the_bug_and_nothing_that_can_be_left_out(uint64_t long_steps) {
  size_t findings = 0, removed = 0;
  for_findings(800, [&](const Program& program, const Found& found) {
    const std::string& title = found.verdict.title;
    const Shrunk shrunk =
        shrink(program, found.schedule, title, {.long_steps = long_steps, .minimum_executions = 0});
    Bench bench(program);
    const Execution execution = bench.run(shrunk.schedule);
    const bool endless = std::holds_alternative<LimitReached>(execution.outcome);
    if (long_steps > 0 && endless && shrunk.proof == Shrunk::Proof::None) return;
    ASSERT_GE(shrunk.proof, Shrunk::Proof::Minimal);
    EXPECT_TRUE(shows(execution, title));
    EXPECT_EQ(shrunk.verdict.title, title);
    const Deviations deviations = deviations_of(execution);
    EXPECT_EQ(shrunk.deviations, deviations.size());
    EXPECT_EQ(shrunk.preemptions, preemptions_of(execution));
    EXPECT_LE(deviations.size(), deviations_of(bench.run(found.schedule)).size());
    for (const auto& [position, decision] : deviations) {
      Deviations fewer = deviations;
      fewer.erase(position);
      Deviating walker(fewer);
      EXPECT_FALSE(shows(bench.run(walker), title)) << "a deviation can be left out";
      ++removed;
    }
    ++findings;
  });
  EXPECT_GT(findings, 150u);
  EXPECT_GT(removed, 150u);
}

TEST(Shrink, KeepsTheBugAndNothingThatCanBeLeftOut) {
  keeps_the_bug_and_nothing_that_can_be_left_out(0);
}

TEST(Shrink, OfLongExecutionsToo) {
  keeps_the_bug_and_nothing_that_can_be_left_out(1);
}

// A preemption that is of no use, and the one that loses an update, in executions that are asked nowhere
// else.
TEST(Shrink, OnePreemptionAloneIsTriedFirstInLongExecutions) {
  ToyBuilder b;
  b.shared("x").shared("y");
  b.thread("worker", "y = 1\nx = x + 1\ny = 2\ny = 3", {.copies = 3})
      .final_check("x == 3", "an update was lost");
  const Program program = built(b);
  Random random;
  ExploreOptions options;
  options.schedules = 50;
  const Explored explored = explore(toy_workers(program), random, options);
  for (const Found& found : explored.result.found) {
    if (found.verdict.kind != BugKind::Assertion) continue;
    const ShrinkOptions few{.executions = 40, .long_steps = 1, .minimum_executions = 0};
    const Shrunk shrunk = shrink(program, found.schedule, found.verdict.title, few);
    EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimal);
    EXPECT_EQ(shrunk.preemptions, 1u);
    return;
  }
  FAIL() << "the lost update was not found";
}

// Depth-first search goes through the schedules by their preemptions: the first to show the bug has the
// fewest.
uint64_t fewest_preemptions(const Program& program, const std::string& title) {
  Dfs dfs({.schedules = DfsOptions::Schedules::All});
  ToyMachine machine(program);
  const auto detectors = all_detectors(machine.names());
  RunnerOptions options = Bench::options();
  options.checkpoint_every = 4;
  Runner runner(machine, detectors.get(), options);
  while (const std::optional<Task> task = dfs.begin()) {
    const Execution execution = runner.run(*task, *dfs.walker(*task));
    if (shows(execution, title)) return preemptions_of(execution);
    dfs.end(*task, execution);
  }
  ADD_FAILURE() << "not found at all";
  return 0;
}

TEST(Shrink, AMinimumIsOne) {
  size_t proved = 0, findings = 0, several = 0;
  for_findings(500, [&](const Program& program, const Found& found) {
    const uint64_t long_steps = findings % 2;
    if (long_steps > 0 && found.verdict.kind == BugKind::Livelock) return;
    const Shrunk shrunk = shrink(program, found.schedule, found.verdict.title, {.long_steps = long_steps});
    ++findings;
    if (shrunk.proof != Shrunk::Proof::Minimum) return;
    ++proved;
    several += shrunk.preemptions > 0;
    EXPECT_EQ(shrunk.preemptions, fewest_preemptions(program, found.verdict.title));
  });
  EXPECT_GT(several, 20u) << "too few need a preemption to say anything";
  EXPECT_GT(100 * proved, 95 * findings);
}

// One preemption suffices, while the lock is held. Then the other thread stops at the lock by itself.
TEST(Shrink, ASwitchAtALockThatIsHeldIsFree) {
  ToyBuilder b;
  b.shared("x").shared("y").sync("m", ToySyncKind::Mutex);
  b.thread("a", "x = x + 1\nlock m\nx = y\nunlock m").thread("b", "lock m\nx = y\nunlock m\ny = x");
  b.final_check("y != 1");
  const Program program = built(b);
  Random random;
  ExploreOptions options;
  options.schedules = 300;
  const Explored explored = explore(toy_workers(program), random, options);
  const auto found = std::find_if(explored.result.found.begin(), explored.result.found.end(),
                                  [](const Found& f) { return f.verdict.kind == BugKind::Assertion; });
  ASSERT_NE(found, explored.result.found.end());
  const Shrunk shrunk = shrink(program, found->schedule, found->verdict.title);
  EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimum);
  EXPECT_EQ(shrunk.preemptions, 1u);
  EXPECT_EQ(fewest_preemptions(program, found->verdict.title), 1u);
}

// a loads, b runs completely, a goes on: one preemption. The found schedule has two, and neither can be left
// out.
TEST(Shrink, FewerPreemptionsAreLookedForNearTheEvidence) {
  ToyBuilder b;
  b.shared("x", {.atomic = true}).shared("y", {.atomic = true});
  b.thread("a", "x = 1\nx = 0").thread("b", "y = 1\nassert x == 0");
  const Program program = built(b);
  const AgentId first = AgentId::initial(0);
  const AgentId second = AgentId::initial(1);
  const Deviations found = {
      {{AgentId{}, 0, false}, second.raw}, {{second, 1, false}, first.raw}, {{first, 1, false}, second.raw}};
  Deviating walker(found);
  const Execution execution = Bench(program).run(walker);
  ASSERT_EQ(preemptions_of(execution), 2u);
  ASSERT_EQ(execution.verdicts.size(), 1u);
  const std::string title = execution.verdicts[0].title;
  for (const Deviations::value_type& leave_out : found) {
    Deviations fewer = found;
    fewer.erase(leave_out.first);
    Deviating without(fewer);
    ASSERT_FALSE(shows(Bench(program).run(without), title));
  }
  // The budget is too small for a proof.
  const Shrunk shrunk = shrink(program, execution.schedule, title, {.minimum_executions = 1});
  EXPECT_EQ(shrunk.preemptions, 1u);
  EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimal);
  EXPECT_EQ(shrunk.excluded, 0u);
  const Shrunk proved = shrink(program, execution.schedule, title);
  EXPECT_EQ(proved.preemptions, 1u);
  EXPECT_EQ(proved.proof, Shrunk::Proof::Minimum);
  EXPECT_EQ(proved.excluded, 1u);
}

TEST(Shrink, BoundsThatWereSearchedThroughAreExcluded) {
  ToyBuilder b;
  b.shared("x", {.atomic = true}).thread("a", "x = 1\nx = 2\nx = 3");
  b.thread("b", "r = x\nq = x\nassert r != 1 || q != 2");
  const Program program = built(b);
  Dfs dfs({.schedules = DfsOptions::Schedules::All});
  ExploreOptions options;
  options.until = ExploreOptions::Until::FirstFailure;
  const std::vector<Found> found = explore(toy_workers(program), dfs, options).result.found;
  const auto failure =
      std::ranges::find(found, BugKind::Assertion, [](const Found& f) { return f.verdict.kind; });
  ASSERT_NE(failure, found.end());
  const uint64_t fewest = fewest_preemptions(program, failure->verdict.title);
  ASSERT_GE(fewest, 2u);
  std::set<uint64_t> excluded;
  for (const uint64_t budget : {1, 2, 3, 4, 6, 8, 12, 16, 20, 30, 100'000}) {
    const Shrunk shrunk =
        shrink(program, failure->schedule, failure->verdict.title, {.minimum_executions = budget});
    EXPECT_EQ(shrunk.proof == Shrunk::Proof::Minimum, shrunk.excluded == shrunk.preemptions);
    EXPECT_LE(shrunk.excluded, fewest) << budget;
    excluded.insert(shrunk.excluded);
  }
  EXPECT_GE(excluded.size(), 3u) << "some budgets are enough for some bounds";
  EXPECT_TRUE(excluded.contains(0) && excluded.contains(fewest));
}

// Without fairness the spinner can spin for ever, so what comes after the limit is unknown.
TEST(Shrink, ExecutionsThatWereCutOffProveNoMinimum) {
  ToyBuilder b;
  b.shared("flag", {.atomic = true}).shared("x", {.atomic = true});
  b.thread("spinner", "while flag == 0 { yield }\nassert x == 1").thread("setter", "flag = 1\nx = 1");
  const Program program = built(b);
  Dfs dfs;
  ExploreOptions options;
  options.inputs.max_steps = kMaxSteps;
  const std::vector<Found> found = explore(toy_workers(program), dfs, options).result.found;
  ASSERT_EQ(found.size(), 1u);
  const Shrunk shrunk = shrink(program, found[0].schedule, found[0].verdict.title);
  EXPECT_EQ(shrunk.preemptions, 1u);
  EXPECT_EQ(shrunk.proof, Shrunk::Proof::Minimal);
  EXPECT_EQ(shrunk.excluded, 0u);
}

TEST(Shrink, AScheduleThatDoesNotShowTheBugIsRefused) {
  ToyBuilder b;
  b.shared("x").thread("a", "x = 1").thread("b", "assert x == 0");
  ToyMachine machine(built(b));
  const auto detectors = all_detectors(machine.names());
  Shrinker shrinker(machine, *detectors, Inputs{});
  const AgentId first = AgentId::initial(0), second = AgentId::initial(1);
  const auto fine = shrinker.shrink(Schedule{{{{}, 0, second}, {second, 1, first}}, {}, 0}, "some title");
  ASSERT_FALSE(fine.ok());
  EXPECT_EQ(fine.error().message, "the schedule does not show \"some title\" when it is run again");
  const auto wrong = shrinker.shrink(Schedule{{{{}, 0, AgentId::initial(7)}}, {}, 0}, "some title");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("which cannot run"), std::string::npos) << wrong.error().message;
}

}  // namespace
}  // namespace slalom
