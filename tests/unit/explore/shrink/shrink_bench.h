// What the tests of shrinking share: a machine that follows schedules, and findings of small programs.
#pragma once

#include "explore/replay.h"
#include "explore/shrink/shrink.h"
#include "unit/explore/under_test.h"

namespace slalom {

inline constexpr uint64_t kMaxSteps = 200;

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

inline bool shows(const Execution& execution, const std::string& title) {
  return std::any_of(execution.verdicts.begin(), execution.verdicts.end(),
                     [&](const Verdict& verdict) { return verdict.title == title; });
}

// Programs whose ends depend on orders and values, with a condition on their ends.
inline ToyBuilder puzzle(uint64_t seed, std::string& text) {
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

inline Shrunk shrink(const Program& program, const Schedule& schedule, const std::string& title,
                     ShrinkOptions options = {}) {
  ToyMachine machine(program);
  const auto detectors = all_detectors(machine.names());
  Inputs inputs;
  inputs.max_steps = kMaxSteps;
  Shrinker shrinker(machine, *detectors, inputs, options);
  return shrinker.shrink(schedule, title).value();
}

}  // namespace slalom
