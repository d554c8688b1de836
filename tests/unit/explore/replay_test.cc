// A replay needs only the schedule, whichever strategy found it and whichever observers watch.
#include "explore/replay.h"

#include "trace/trace_log.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

constexpr Where kPolicies[] = {Where::Everywhere, Where::Sync, Where::Nowhere};

struct Watching {
  bool detectors = true;
  bool log = false;
};

struct Replayed {
  Trace trace;
  std::optional<std::string> divergence;
};

Replayed replay(const Program& program, const Schedule& schedule, Where where, Watching watching = {}) {
  ToyMachine machine(program, ToyMachine::SnapshotMode::Off);
  const auto detectors = all_detectors(machine.names());
  RunnerOptions options;
  options.inputs.policy.where = where;
  options.inputs.policy.stops = stops_of(schedule);
  options.fair = false;
  Runner runner(machine, watching.detectors ? detectors.get() : nullptr, options);
  TraceLog log;
  if (watching.log) runner.set_extra_sink(&log);
  ScheduleWalker walker(schedule);
  const Execution execution = runner.run(Task{}, walker);
  return {trace_of(execution), walker.divergence()};
}

// Returns executions of every kind of search under a policy, each with its schedule.
std::vector<Trace> some_executions(const Program& program, Where where, uint64_t schedules) {
  std::vector<Trace> traces;
  for (const StrategyKind& kind : all_kinds()) {
    if (kind.everywhere && where != Where::Everywhere) continue;
    ExploreOptions options;
    options.inputs.policy.where = where;
    options.schedules = schedules;
    const std::unique_ptr<Strategy> strategy = kind.make();
    Explorer search(*strategy, toy_workers(program), options);
    search.on_execution = [&](const Task&, const Execution& execution) {
      if (!std::holds_alternative<Abandoned>(execution.outcome)) traces.push_back(trace_of(execution));
    };
    EXPECT_TRUE(search.run().ok());
  }
  return traces;
}

TEST(Replay, GivesTheSameExecutionUnderEveryPolicy) {
  size_t replays = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    const RandomProgram random = ProgramGenerator(seed).make(10);
    SCOPED_TRACE(random.text);
    const Program program = built(random.builder);
    for (const Where found_with : kPolicies) {
      for (const Trace& found : some_executions(program, found_with, 4)) {
        for (const Where where : kPolicies) {
          const Replayed again = replay(program, found.schedule, where);
          EXPECT_EQ(again.trace, found) << difference(again.trace, found);
          EXPECT_EQ(again.divergence, std::nullopt);
          ++replays;
        }
      }
    }
  }
  EXPECT_GT(replays, 10'000u);
}

TEST(Replay, DoesNotDependOnWhoLooksOn) {
  for (uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    const RandomProgram random = ProgramGenerator(seed).make(9);
    SCOPED_TRACE(random.text);
    const Program program = built(random.builder);
    for (Trace found : some_executions(program, Where::Sync, 2)) {
      const Trace logged = replay(program, found.schedule, Where::Nowhere, {.log = true}).trace;
      EXPECT_EQ(logged, found) << difference(logged, found);
      found.verdicts.clear();
      EXPECT_EQ(replay(program, found.schedule, Where::Sync, {.detectors = false, .log = true}).trace, found);
      EXPECT_EQ(replay(program, found.schedule, Where::Everywhere, {.detectors = false}).trace, found);
    }
  }
}

// Changes a schedule at random, mostly for the worse.
Schedule changed(Schedule schedule, Rng& rng) {
  auto& switches = schedule.switches;
  const size_t at = rng.below(switches.size());
  switch (rng.below(schedule.data.empty() ? 5 : 7)) {
    case 0:
      switches.erase(switches.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      switches[at].to = AgentId::initial(static_cast<uint32_t>(rng.below(4)));
      break;
    case 2:
      switches[at].from_ops += rng.below(2) == 0 ? 1 : 3;
      break;
    case 3:
      switches.insert(switches.begin() + static_cast<std::ptrdiff_t>(at), switches[at]);
      break;
    case 4:
      switches.push_back({switches.back().to, 1 + rng.below(6), switches.front().to});
      break;
    case 5:
      schedule.data[rng.below(schedule.data.size())].value += 1;
      break;
    case 6:
      schedule.data.push_back(schedule.data.back());
      break;
  }
  // A switch from an agent to itself is no switch.
  std::erase_if(switches, [](const Switch& s) { return s.from == s.to; });
  return schedule;
}

// The oracle: either the execution is the described one, or the walker reports a divergence.
TEST(Replay, AChangedScheduleFitsOrReportsItsDivergence) {
  size_t fitted = 0, diverged = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    const RandomProgram random = ProgramGenerator(seed).make(9);
    SCOPED_TRACE(random.text);
    const Program program = built(random.builder);
    Rng rng(seed, 5);
    for (const Trace& found : some_executions(program, Where::Everywhere, 2)) {
      const Schedule other = changed(found.schedule, rng);
      for (const Where where : {Where::Everywhere, Where::Nowhere}) {
        const Replayed again = replay(program, other, where);
        const bool fits =
            again.trace.schedule.switches == other.switches && again.trace.schedule.data == other.data;
        EXPECT_EQ(fits, !again.divergence) << again.divergence.value_or("no divergence was reported");
        ++(fits ? fitted : diverged);
      }
    }
  }
  EXPECT_GT(fitted, 100u);
  EXPECT_GT(diverged, 1000u);
}

TEST(Replay, ADivergenceSaysWhatDidNotFit) {
  ToyBuilder b;
  b.shared("x").sync("m", ToySyncKind::Mutex);
  b.thread("holder", "lock m\nx = 1\nunlock m").thread("other", "lock m\nunlock m");
  const Program program = built(b);
  const AgentId holder = AgentId::initial(0), other = AgentId::initial(1);
  const auto divergence = [&](std::vector<Switch> switches, std::vector<DataChoice> data = {}) {
    return replay(program, Schedule{std::move(switches), std::move(data), 0}, Where::Everywhere)
        .divergence.value_or("none");
  };
  EXPECT_EQ(divergence({{{}, 0, holder}, {holder, 3, other}}), "none");
  EXPECT_EQ(divergence({{{}, 0, holder}, {holder, 1, other}}),
            "step 1: the schedule switches to agent 2, which cannot run");
  EXPECT_EQ(divergence({{{}, 0, holder}}),
            "step 3: agent 1 cannot go on and the schedule does not say who does");
  EXPECT_EQ(divergence({{{}, 0, other}, {other, 2, holder}, {holder, 3, other}}),
            "the execution never got to where agent 1 gives way to 2, after 3 operations");
  EXPECT_EQ(divergence({{{}, 0, other}, {other, 2, holder}}, {{holder, 1, 0, 0}}),
            "the execution never got to where agent 1 chooses a value, after 1 operations");
}

}  // namespace
}  // namespace slalom
