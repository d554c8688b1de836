// Shared code of the tests of the search library: every strategy by name, and executions as values that can
// be compared.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "explore/strategies/dfs.h"
#include "explore/strategies/dpor.h"
#include "explore/strategies/pct.h"
#include "explore/strategies/portfolio.h"
#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "explore/strategies/surw.h"
#include "trace/files/serialise.h"
#include "unit/explore/random_program.h"
#include "unit/explore/search.h"

namespace slalom {

using Program = std::shared_ptr<const ToyProgram>;
using Where = ChoicePolicy::Where;

struct StrategyKind {
  std::string name;
  std::function<std::unique_ptr<Strategy>()> make;
  bool ends = false;        // finishes by itself
  bool everywhere = false;  // needs choice points everywhere
};

template <typename S, typename Options>
StrategyKind kind(std::string name, Options options, bool ends, bool everywhere = false) {
  return {std::move(name), [options] { return std::make_unique<S>(options); }, ends, everywhere};
}

inline std::vector<StrategyKind> exhaustive_kinds() {
  using Bound = DfsOptions::Bound;
  using Mode = DporOptions::Mode;
  const auto cache = DfsOptions::Caching::HappensBefore;
  return {kind<Dfs>("dfs", DfsOptions{.bound = Bound::None}, true),
          kind<Dfs>("dfs by preemptions", DfsOptions{}, true),
          kind<Dfs>("dfs by delays, limited", DfsOptions{.bound = Bound::Delays, .limit = 3}, true),
          kind<Dfs>("dfs with cache", DfsOptions{.caching = cache}, true),
          kind<Dpor>("dpor", DporOptions{}, true, true),
          kind<Dpor>("dpor coarse", DporOptions{.mode = Mode::Coarse}, true),
          kind<Dpor>("dpor bounded", DporOptions{.mode = Mode::Bounded, .limit = 2}, true)};
}

inline std::vector<StrategyKind> sampling_kinds() {
  const auto alternate = SurwOptions::Interesting::Alternate;
  const auto portfolio = []() -> std::unique_ptr<Strategy> {
    auto arms = sampling_arms(5);
    arms.push_back(std::make_unique<Dfs>());
    return std::make_unique<Portfolio>(std::move(arms));
  };
  return {kind<Random>("random", RandomOptions{7}, false),
          kind<Pct>("pct", PctOptions{.seed = 7}, false),
          kind<Pos>("pos", PosOptions{7}, false),
          kind<Surw>("surw", SurwOptions{.seed = 7, .interesting = alternate}, false),
          {"portfolio", portfolio, false, false}};
}

inline std::vector<StrategyKind> all_kinds() {
  std::vector<StrategyKind> all = exhaustive_kinds();
  for (StrategyKind& sampling : sampling_kinds()) all.push_back(std::move(sampling));
  return all;
}

inline WorkerFactory toy_workers(Program program,
                                 ToyMachine::SnapshotMode mode = ToyMachine::SnapshotMode::On) {
  return [=]() -> Result<Worker> {
    Worker worker;
    worker.machine = std::make_unique<ToyMachine>(program, mode);
    worker.observer = all_detectors(worker.machine->names());
    return worker;
  };
}

// Searches with many short executions, whose rounds grow.
struct LongSearch {
  StrategyKind kind;
  Program program;
};
inline std::vector<LongSearch> long_searches() {
  std::vector<LongSearch> searches;
  for (const StrategyKind& kind : exhaustive_kinds())
    if (kind.name != "dfs by delays, limited" && kind.name != "dpor coarse")
      searches.push_back({kind, example("readers", {{"n", kind.name == "dpor" ? 11 : 6}})});
  return searches;
}

// Everything of an execution that must not depend on the strategy, the starting point or the observers.
struct Trace {
  std::vector<uint8_t> outcome;
  uint64_t class_hash, state_hash, steps;
  Schedule schedule;
  std::vector<std::pair<AgentId, uint64_t>> agent_ops;
  std::vector<Verdict> verdicts;
  bool operator==(const Trace&) const = default;
};

inline Trace trace_of(const Execution& execution) {
  ByteWriter outcome;
  encode(outcome, execution.outcome);
  return {outcome.take(),     execution.class_hash, execution.state_hash, execution.steps,
          execution.schedule, execution.agent_ops,  execution.verdicts};
}

// For failure messages: names the parts of a trace that differ.
inline std::string difference(const Trace& a, const Trace& b) {
  std::string text;
  if (a.outcome != b.outcome) text += " outcome";
  if (a.class_hash != b.class_hash) text += " class";
  if (a.state_hash != b.state_hash) text += " state";
  if (a.steps != b.steps) text += " steps";
  if (a.schedule.switches != b.schedule.switches) text += " switches";
  if (a.schedule.data != b.schedule.data) text += " data";
  if (a.agent_ops != b.agent_ops) text += " agent_ops";
  if (a.verdicts != b.verdicts) text += " verdicts";
  return text;
}

inline bool operator==(const Found& a, const Found& b) {
  return a.verdict == b.verdict && a.schedule == b.schedule && a.execution == b.execution &&
         a.occurrences == b.occurrences;
}

// Compares everything that a search promises to be the same. steps_run is not promised.
inline void expect_same(const ExploreResult& a, const ExploreResult& b) {
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.executions, b.executions);
  EXPECT_EQ(a.blocked, b.blocked);
  EXPECT_EQ(a.truncated, b.truncated);
  EXPECT_EQ(a.diverged, b.diverged);
  EXPECT_EQ(a.failed, b.failed);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.choice_points, b.choice_points);
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.trouble, b.trouble);
  EXPECT_EQ(a.end, b.end);
  EXPECT_EQ(a.coverage.exhausted, b.coverage.exhausted);
  EXPECT_EQ(a.coverage.statement, b.coverage.statement);
  EXPECT_EQ(a.coverage.completed, b.coverage.completed);
  EXPECT_EQ(a.coverage.estimated_total, b.coverage.estimated_total);
  EXPECT_EQ(a.found, b.found);
}

struct Explored {
  ExploreResult result;
  std::vector<Trace> traces;  // in order
};

inline Explored explore(const WorkerFactory& workers, Strategy& strategy, const ExploreOptions& options) {
  Explorer explorer(strategy, workers, options);
  Explored explored;
  explorer.on_execution = [&](const Task&, const Execution& execution) {
    explored.traces.push_back(trace_of(execution));
  };
  explored.result = explorer.run().value();
  return explored;
}

}  // namespace slalom
