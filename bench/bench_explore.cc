// Speed of the toy machine, cost of a choice for each strategy, executions per second of the exhaustive
// searches, and how they scale with workers.
#include <benchmark/benchmark.h>

#include "campaign/job.h"
#include "explore/explorer.h"
#include "support/source_dir.h"
#include "toy/toy_builder.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"

namespace slalom {
namespace {

class NullSink : public EventSink {
 public:
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event&) override {}
  void on_end(const Outcome&) override {}
};

// `agents` threads that each add to a counter of their own many times: nothing ever blocks.
std::shared_ptr<const ToyProgram> counters(int64_t agents, int64_t rounds) {
  ToyBuilder b("counters");
  b.shared("x", {.size = agents});
  b.thread("t", "for i in 0.." + std::to_string(rounds) + " {\nx[id] = x[id] + 1\n}", {.copies = agents});
  return std::make_shared<const ToyProgram>(*b.build());
}

std::shared_ptr<const ToyProgram> example(const std::string& name, int64_t n) {
  return std::make_shared<const ToyProgram>(
      *load_toy_file(source_dir() + "/examples/toy/" + name + ".toml", {{"n", n}}));
}

// The bare machine, stopping only where it must.
void toy_machine_steps(benchmark::State& state) {
  ToyMachine machine(counters(2, 4000));
  NullSink sink;
  Inputs inputs;
  inputs.policy.where = ChoicePolicy::Where::Nowhere;
  inputs.max_steps = 1'000'000;
  uint64_t steps = 0;
  for (auto _ : state) {
    (void)machine.reset(inputs);
    Stop stop = machine.start(sink);
    while (const auto* point = std::get_if<ChoicePoint>(&stop))
      stop = machine.resume({point->options()[0].agent, 0, 0});
    steps += machine.position().raw;
  }
  state.counters["steps/s"] = benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
}
BENCHMARK(toy_machine_steps);

// The bare machine, stopping at every operation and going on.
void choice_point_without_switch(benchmark::State& state) {
  ToyMachine machine(counters(2, 4000));
  NullSink sink;
  Inputs inputs;
  inputs.max_steps = 1'000'000;
  uint64_t points = 0;
  for (auto _ : state) {
    (void)machine.reset(inputs);
    Stop stop = machine.start(sink);
    while (const auto* point = std::get_if<ChoicePoint>(&stop)) {
      const AgentId next = point->current_enabled() ? point->current : point->options()[0].agent;
      stop = machine.resume({next, 0, 0});
      ++points;
    }
  }
  state.counters["choices/s"] = benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate);
}
BENCHMARK(choice_point_without_switch);

ExploreResult explore(const std::shared_ptr<const ToyProgram>& program, Strategy& strategy,
                      ExploreOptions options) {
  const auto factory = [&]() -> Result<Worker> {
    return Worker{std::make_unique<ToyMachine>(program), nullptr};
  };
  return *Explorer(strategy, factory, std::move(options)).run();
}

// Whole cost of an execution, divided by its choice points: machine, recording and strategy together.
void strategy_choice(benchmark::State& state, const char* name, int64_t agents) {
  const auto program = counters(agents, 2000 / agents);
  uint64_t choices = 0;
  for (auto _ : state) {
    const auto strategy = *make_strategy(*parse_strategy(name, 1), ChoicePolicy{});
    ExploreOptions options;
    options.schedules = 8;
    choices += explore(program, *strategy, options).choice_points;
  }
  state.counters["ns/choice"] = benchmark::Counter(static_cast<double>(choices) * 1e-9,
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(strategy_choice, random_2, "random", 2);
BENCHMARK_CAPTURE(strategy_choice, pct_2, "pct:depth=3", 2);
BENCHMARK_CAPTURE(strategy_choice, pos_2, "pos", 2);
BENCHMARK_CAPTURE(strategy_choice, surw_2, "surw:interesting=all", 2);
BENCHMARK_CAPTURE(strategy_choice, random_8, "random", 8);
BENCHMARK_CAPTURE(strategy_choice, pct_8, "pct:depth=3", 8);
BENCHMARK_CAPTURE(strategy_choice, pos_8, "pos", 8);
BENCHMARK_CAPTURE(strategy_choice, surw_8, "surw:interesting=all", 8);

// A whole exhaustive search; the argument is the number of workers. Compare within one run.
void exhaustive(benchmark::State& state, const char* strategy_name, const char* program_name, int64_t n) {
  const auto program = example(program_name, n);
  uint64_t executions = 0;
  for (auto _ : state) {
    const auto strategy = *make_strategy(*parse_strategy(strategy_name, 1), ChoicePolicy{});
    ExploreOptions options;
    options.workers = static_cast<unsigned>(state.range(0));
    executions += explore(program, *strategy, options).tasks;
  }
  state.counters["executions/s"] =
      benchmark::Counter(static_cast<double>(executions), benchmark::Counter::kIsRate);
}
#define WORKERS ->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond)
BENCHMARK_CAPTURE(exhaustive, dpor_readers_13, "dpor", "readers", 13) WORKERS;
BENCHMARK_CAPTURE(exhaustive, dpor_indexer_15, "dpor", "indexer", 15) WORKERS;
BENCHMARK_CAPTURE(exhaustive, dpor_filesystem_19, "dpor", "filesystem", 19) WORKERS;
BENCHMARK_CAPTURE(exhaustive, dfs_readers_7, "dfs", "readers", 7) WORKERS;
BENCHMARK_CAPTURE(exhaustive, dfs_cache_readers_8, "dfs:cache", "readers", 8) WORKERS;

void sampling(benchmark::State& state) {
  const auto program = example("filesystem", 16);
  uint64_t executions = 0;
  for (auto _ : state) {
    const auto strategy = *make_strategy(*parse_strategy("random", 1), ChoicePolicy{});
    ExploreOptions options;
    options.workers = static_cast<unsigned>(state.range(0));
    options.schedules = 4000;
    executions += explore(program, *strategy, options).tasks;
  }
  state.counters["executions/s"] =
      benchmark::Counter(static_cast<double>(executions), benchmark::Counter::kIsRate);
}
BENCHMARK(sampling) WORKERS;

}  // namespace
}  // namespace slalom
