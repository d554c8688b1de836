// Checks the claims of shrunk schedules by independent means: another walker, and plain depth-first search.
#include "explore/shrink/shrink.h"

#include "explore/replay.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

constexpr uint64_t kMaxSteps = 200;

// A machine with detectors that runs one execution at a time from the start.
struct Bench {
  ToyMachine machine;
  std::unique_ptr<DetectorSet> detectors;
  Runner runner;

  explicit Bench(const Program& program)
      : machine(program),
        detectors(all_detectors(machine.names())),
        runner(machine, detectors.get(), options()) {}
  static RunnerOptions options() {
    RunnerOptions options;
    options.inputs.max_steps = kMaxSteps;
    options.recording = Recording::Choices;
    options.fair = false;
    options.checkpoint_every = 0;
    return options;
  }
  Execution run(Walker& walker) { return runner.run(Task{}, walker); }
  Execution run(const Schedule& schedule) {
    ScheduleWalker walker(schedule);
    Execution execution = run(walker);
    EXPECT_EQ(walker.divergence(), std::nullopt);
    return execution;
  }
};

bool shows(const Execution& execution, const std::string& title) {
  return std::any_of(execution.verdicts.begin(), execution.verdicts.end(),
                     [&](const Verdict& verdict) { return verdict.title == title; });
}

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
    if (data)
      return Decision{point.current, at == deviations_.end() ? 0 : static_cast<uint32_t>(at->second), 0};
    if (at != deviations_.end())
      for (const Option& option : options)
        if (option.agent.raw == at->second) return Decision{option.agent, 0, 0};
    return Decision{undisturbed(point.kind, point.current, options), 0, 0};
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

// Programs whose ends depend on orders and values, with a condition on their ends.
ToyBuilder puzzle(uint64_t seed, std::string& text) {
  const char* operations[] = {"x = x + 1\n",
                              "x = x + 1\n",
                              "y = x\n",
                              "x = y + 2\n",
                              "r = choose(2)\ny = y + r\n",
                              "lock m\nx = y\nunlock m\n"};
  Rng rng(seed, 3);
  std::string code[3];
  for (int i = 0; i < 4; ++i) code[rng.below(3)] += operations[rng.below(std::size(operations))];
  ToyBuilder b("puzzle");
  b.shared("x").shared("y").sync("m", ToySyncKind::Mutex);
  for (int t = 0; t < 3; ++t) {
    b.thread("t" + std::to_string(t), code[t]);
    text += "t" + std::to_string(t) + ":\n" + code[t];
  }
  const std::string check = "x * 5 + y != " + std::to_string(rng.below(16));
  b.final_check(check, "solved");
  text += check + "\n";
  return b;
}

// Calls `check` for everything that a random walk finds in small random programs and puzzles, in turn.
template <typename Check>
void for_findings(uint64_t seeds, Check check) {
  const uint64_t first = first_program();
  for (uint64_t seed = first; seed < first + seeds && !testing::Test::HasFailure(); ++seed) {
    std::string text;
    const RandomProgram random = ProgramGenerator(seed).make(7);
    const Program program = built(seed % 4 == 0 ? random.builder : puzzle(seed, text));
    SCOPED_TRACE("program " + std::to_string(seed) + "\n" + (seed % 4 == 0 ? random.text : text));
    Random strategy({seed + 1});
    ExploreOptions options;
    options.schedules = 60;
    options.inputs.max_steps = kMaxSteps;
    const Explored explored = explore(toy_workers(program), strategy, options);
    for (const Found& found : explored.result.found) {
      if (found.verdict.kind == BugKind::DataRace && seed % 4 != 0) continue;
      SCOPED_TRACE(found.verdict.title);
      check(program, found);
    }
  }
}

Shrunk shrink(const Program& program, const Schedule& schedule, const std::string& title,
              ShrinkOptions options = {}) {
  ToyMachine machine(program);
  const auto detectors = all_detectors(machine.names());
  Inputs inputs;
  inputs.max_steps = kMaxSteps;
  Shrinker shrinker(machine, *detectors, inputs, options);
  return shrinker.shrink(schedule, title).value();
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
