// An execution that starts at a checkpoint equals one that ran from the beginning, in everything but its
// cost.
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

Explored explore(const Program& program, const StrategyKind& kind, uint32_t every, bool snapshots = true) {
  const auto mode = snapshots ? ToyMachine::SnapshotMode::On : ToyMachine::SnapshotMode::Off;
  ExploreOptions options;
  options.checkpoint_every = every;
  options.schedules = 400;
  return explore(toy_workers(program, mode), *kind.make(), options);
}

TEST(Checkpoints, ChangeNothingButTheCost) {
  size_t races = 0;
  uint64_t steps = 0, steps_run = 0;
  for (const StrategyKind& kind : exhaustive_kinds()) {
    for (uint64_t seed = 0; seed < 45 && !HasFailure(); ++seed) {
      const RandomProgram random = ProgramGenerator(seed).make(9);
      SCOPED_TRACE(kind.name + "\n" + random.text);
      const Program program = built(random.builder);
      const Explored plain = explore(program, kind, 0);
      EXPECT_EQ(plain.result.positions_run, plain.result.positions);
      for (const Found& found : plain.result.found)
        races += found.verdict.kind == BugKind::DataRace && found.verdict.evidence.size() >= 2;
      for (const uint32_t every : {1u, 3u, 8u}) {
        const Explored quick = explore(program, kind, every);
        expect_same(quick.result, plain.result);
        EXPECT_EQ(quick.traces, plain.traces) << "a checkpoint every " << every;
        EXPECT_LE(quick.result.positions_run, plain.result.positions);
        if (every == 1) {
          steps += quick.result.positions;
          steps_run += quick.result.positions_run;
        }
      }
      const Explored without = explore(program, kind, 8, false);
      expect_same(without.result, plain.result);
      EXPECT_EQ(without.traces, plain.traces);
      EXPECT_EQ(without.result.positions_run, without.result.positions);
    }
  }
  EXPECT_GT(races, 100u) << "the programs have too few data races to say anything";
  EXPECT_LT(4 * steps_run, 3 * steps);
}

// Depth-first search takes alternatives at the end of a long execution first. With a checkpoint at every
// choice point, each costs only the part that differs, however long the common part is.
TEST(Checkpoints, CostTheSuffixOnly) {
  ToyBuilder b;
  b.shared("x").shared("y").sync("m", ToySyncKind::Mutex);
  b.thread("main", "for i in 0..200 { x = i }\nspawn child\ny = 1\ny = 2\njoin child");
  b.thread("child", "y = 3\ny = 4", {.start = false});
  const Program program = built(b);
  for (const StrategyKind& kind : exhaustive_kinds()) {
    const Explored quick = explore(program, kind, 1);
    ASSERT_GT(quick.result.tasks, 3u) << kind.name;
    EXPECT_LT(quick.result.positions_run, 200 + 20 * quick.result.tasks) << kind.name;
    EXPECT_GT(quick.result.positions, 200 * quick.result.executions) << kind.name;
  }
}

// A worker's next task may share nothing with its last one.
TEST(Checkpoints, AreUsableByTasksInAnyOrder) {
  ToyBuilder b;
  b.shared("x").sync("m", ToySyncKind::Mutex).sync("s", ToySyncKind::Semaphore);
  b.thread("a", "x = x + 1\nyield\nup s\nr = choose(3)\nx = r", {.copies = 2});
  b.thread("b", "down s\nlock m\nassert x != 2\nunlock m");
  const Program program = built(b);
  std::vector<Task> tasks;
  std::vector<Trace> expected;
  Dfs dfs;
  ExploreOptions options;
  options.schedules = 300;
  options.checkpoint_every = 0;
  Explorer explorer(dfs, toy_workers(program), options);
  explorer.on_execution = [&](const Task& task, const Execution& execution) {
    tasks.push_back(task);
    expected.push_back(trace_of(execution));
  };
  ASSERT_TRUE(explorer.run().ok());
  ASSERT_EQ(tasks.size(), 300u);

  ToyMachine machine(program);
  const auto detectors = all_detectors(machine.names());
  RunnerOptions runner_options;
  runner_options.recording = Recording::Choices;
  runner_options.checkpoint_every = 2;
  Runner runner(machine, detectors.get(), runner_options);
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const size_t at = rng.below(tasks.size());
    const Trace again = trace_of(runner.run(tasks[at], *dfs.walker(tasks[at])));
    ASSERT_EQ(again, expected[at]) << difference(again, expected[at]);
  }
}

}  // namespace
}  // namespace slalom
