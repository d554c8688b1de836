// Imperfect replay (CHESS 4.2): a nondeterministic target is reported. The search neither loops on it nor
// believes it.
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

constexpr ToySharedOptions kPersistent{.atomic = true, .persistent = true};

// Does more work in its first execution.
ToyBuilder lazy() {
  ToyBuilder b;
  b.shared("ready", kPersistent).shared("x", {.atomic = true});
  b.thread("a", "x = 1\nif ready == 0 {\nready = 1\nx = 2\nx = 3\n}\nx = 4").thread("b", "x = 5\nx = 6");
  return b;
}

// Behaves differently in every execution.
ToyBuilder counting() {
  ToyBuilder b;
  b.shared("runs", kPersistent).shared("x", {.atomic = true});
  b.thread("a", "n = fetch_add(runs, 1)\nfor i in 0..n % 7 { x = i }\nx = 9").thread("b", "x = 5\nx = 6");
  return b;
}

// Every second execution is the same.
ToyBuilder flickering() {
  ToyBuilder b;
  b.shared("runs", kPersistent).shared("x", {.atomic = true});
  b.thread("a", "n = fetch_add(runs, 1)\nif n % 2 == 1 { x = 1 }\nx = 2\nx = 3").thread("b", "x = 5\nx = 6");
  return b;
}

ExploreOptions from_the_start(unsigned workers = 1) {
  ExploreOptions options;
  options.checkpoint_every = 0;
  options.schedules = 5000;
  options.workers = workers;
  return options;
}

std::vector<Execution> executions(const ToyBuilder& b, Strategy& strategy, const ExploreOptions& options,
                                  ExploreResult& result) {
  Explorer explorer(strategy, toy_workers(built(b)), options);
  std::vector<Execution> all;
  explorer.on_execution = [&](const Task&, const Execution& execution) { all.push_back(execution); };
  result = explorer.run().value();
  return all;
}

TEST(Divergence, IsSeenAtTheFirstChoiceThatDiffers) {
  Dfs dfs;
  ExploreResult result;
  const auto all = executions(lazy(), dfs, from_the_start(), result);
  ASSERT_GT(result.diverged, 0u);
  for (const Execution& execution : all) {
    if (!execution.divergence) continue;
    EXPECT_EQ(execution.attempts, 3u);
    // a does x = 1, then the load of `ready`, then another operation than in the first execution. There the
    // digest of the choice point differs, whatever b did meanwhile.
    uint64_t of_a = 0, at = 0;
    for (; at < execution.divergence->choice; ++at)
      of_a += execution.choices[at].taken.agent == AgentId::initial(0);
    EXPECT_EQ(of_a, 2u) << "choice " << execution.divergence->choice;
    EXPECT_EQ(execution.divergence->position.raw, execution.divergence->choice);
    EXPECT_TRUE(std::holds_alternative<Exited>(execution.outcome)) << "it runs to its end";
  }
}

TEST(Divergence, TheSearchGoesOnAndSaysThatItIsNotExhaustive) {
  for (const StrategyKind& kind : exhaustive_kinds()) {
    SCOPED_TRACE(kind.name);
    ExploreResult result;
    const auto all = executions(lazy(), *kind.make(), from_the_start(), result);
    EXPECT_GT(result.diverged, 0u);
    EXPECT_GT(result.executions, kind.name.starts_with("dfs") ? 3u : 0u);
    EXPECT_EQ(result.tasks, result.executions + result.blocked + result.truncated + result.diverged);
    EXPECT_EQ(result.end, ExploreResult::End::SpaceExplored);
    EXPECT_FALSE(exhausted(result));
    ASSERT_FALSE(result.trouble.empty());
    EXPECT_TRUE(result.trouble[0].starts_with("not deterministic: ")) << result.trouble[0];
  }
}

TEST(Divergence, ATargetThatNeverRepeatsItselfIsNeitherBelievedNorLoopedOn) {
  for (const StrategyKind& kind : exhaustive_kinds()) {
    for (const unsigned workers : {1u, 2u}) {
      SCOPED_TRACE(kind.name);
      ExploreResult result;
      const auto all = executions(counting(), *kind.make(), from_the_start(workers), result);
      EXPECT_GT(result.diverged, 0u);
      EXPECT_FALSE(exhausted(result));
      EXPECT_EQ(result.end, ExploreResult::End::SpaceExplored);
      EXPECT_LE(result.trouble.size(), 4u) << "each kind once";
    }
  }
}

// What follows a divergence is not what the task was to explore. A depth-first search must not look for
// branches there.
TEST(Divergence, WhereItLeadsNothingIsSearched) {
  Dfs dfs({.bound = DfsOptions::Bound::None});
  const Task first = *dfs.begin();
  Execution execution;
  const AgentId a = AgentId::initial(0), b = AgentId::initial(1);
  execution.outcome = Exited{};
  for (int i = 0; i < 3; ++i) {
    ChoiceRecord record;
    record.kind = ChoiceKind::Running;
    record.current = record.taken.agent = a;
    record.first_option = static_cast<uint32_t>(execution.options.size());
    execution.options.push_back({a, {}});
    execution.options.push_back({b, {}});
    execution.choices.push_back(record);
  }
  execution.divergence.emplace();
  dfs.end(first, execution);
  EXPECT_FALSE(dfs.begin().has_value());
}

TEST(Divergence, ASecondAttemptOftenHelps) {
  Dfs dfs;
  ExploreResult result;
  const auto all = executions(flickering(), dfs, from_the_start(), result);
  EXPECT_EQ(result.diverged, 0u);
  EXPECT_TRUE(exhausted(result));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Execution& e) { return e.attempts == 2; }));
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](const Execution& e) { return e.attempts <= 2; }));
}

// Ends before all recorded decisions are used.
TEST(Divergence, AnEarlierEndIsOneToo) {
  ToyBuilder b;
  b.shared("runs", kPersistent).shared("x", {.atomic = true});
  b.thread("a", "n = fetch_add(runs, 1)\nassert n == 0\nx = 1\nx = 2").thread("b", "x = 3");
  for (const StrategyKind& kind : exhaustive_kinds()) {
    SCOPED_TRACE(kind.name);
    ExploreResult result;
    const auto all = executions(b, *kind.make(), from_the_start(), result);
    EXPECT_GT(result.diverged, 0u);
    EXPECT_FALSE(exhausted(result));
    for (const Execution& execution : all) {
      if (!execution.divergence) continue;
      EXPECT_EQ(execution.divergence->what, "an earlier end than before");
    }
  }
}

// A worker whose last execution diverged has checkpoints of the other course.
TEST(Divergence, ACheckpointOfAnotherWayIsNotUsed) {
  ToyMachine machine(built(lazy()));
  RunnerOptions options;
  options.recording = Recording::Choices;
  options.checkpoint_every = 1;
  Runner runner(machine, nullptr, options);
  Dfs dfs;
  const Task root = dfs.begin().value();
  const Execution first = runner.run(root, *dfs.walker(root));
  Execution second;
  {
    Runner other(machine, nullptr, options);  // from the start, when the lazy work is already done
    second = other.run(root, *dfs.walker(root));
    ASSERT_NE(first.class_hash, second.class_hash);
    Task task;
    task.hint = root.hint;
    for (size_t i = 0; i < 5; ++i) task.prefix.push_back(first.choices[i].taken);
    const Execution third = other.run(task, *dfs.walker(task));
    EXPECT_EQ(third.attempts, 3u);
    ASSERT_TRUE(third.divergence);
    EXPECT_EQ(third.divergence->choice, 2u);
  }
}

TEST(RunTwice, NamesWhatIsNotDeterministic) {
  for (const StrategyKind& kind : all_kinds()) {
    SCOPED_TRACE(kind.name);
    ExploreOptions options;  // with checkpoints, as users run it
    options.verify = ExploreOptions::Verify::RunTwice;
    options.schedules = 40;
    ExploreResult result;
    executions(counting(), *kind.make(), options, result);
    EXPECT_GT(result.diverged, 0u);
    EXPECT_FALSE(exhausted(result));
    ASSERT_FALSE(result.trouble.empty());
    EXPECT_NE(result.trouble[0].find("not deterministic: a second run of the same schedule went another way"),
              std::string::npos)
        << result.trouble[0];
  }
}

TEST(RunTwice, IsContentWithWhatIs) {
  for (const StrategyKind& kind : all_kinds()) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const RandomProgram random = ProgramGenerator(seed).make(6);
      SCOPED_TRACE(kind.name + "\n" + random.text);
      ExploreOptions options;
      options.schedules = 100;
      const Explored once = explore(toy_workers(built(random.builder)), *kind.make(), options);
      options.verify = ExploreOptions::Verify::RunTwice;
      const Explored twice = explore(toy_workers(built(random.builder)), *kind.make(), options);
      expect_same(twice.result, once.result);
      EXPECT_EQ(twice.traces, once.traces);
    }
  }
}

}  // namespace
}  // namespace slalom
