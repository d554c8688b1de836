// The search loop: its limits, its ends, and its reports of failures.
#include <atomic>

#include "unit/explore/round_robin.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

using End = ExploreResult::End;

ToyBuilder lost_update() {
  ToyBuilder b("lost-update");
  b.shared("x").thread("worker", "x = x + 1", {.copies = 2}).final_check("x == 2", "an update was lost");
  return b;
}

TEST(Explorer, MakesExactlyAsManyExecutionsAsAskedFor) {
  for (const StrategyKind& kind : all_kinds()) {
    for (const uint64_t schedules : {1, 2, 5, 63, 64, 65, 200}) {
      for (const unsigned workers : {1u, 3u}) {
        SCOPED_TRACE(kind.name);
        ExploreOptions options;
        options.schedules = schedules;
        options.workers = workers;
        const auto program = example("readers", {{"n", 8}});
        const Explored explored = explore(toy_workers(program), *kind.make(), options);
        const bool whole = explored.result.tasks < schedules;
        EXPECT_TRUE(kind.ends || !whole);
        EXPECT_LE(explored.result.tasks, schedules);
        EXPECT_EQ(explored.traces.size(), explored.result.tasks);
        EXPECT_EQ(explored.result.end, whole ? End::SpaceExplored : End::ScheduleLimit);
        EXPECT_EQ(explored.result.tasks,
                  explored.result.executions + explored.result.blocked + explored.result.truncated);
      }
    }
  }
}

TEST(Explorer, ExecutionsComeInTheOrderOfTheirTasks) {
  RoundRobin strategy(300);
  ExploreOptions options;
  options.workers = 3;
  Explorer explorer(strategy, toy_workers(built(lost_update())), options);
  uint64_t next = 0;
  explorer.on_execution = [&](const Task& task, const Execution&) { EXPECT_EQ(task.index, next++); };
  const ExploreResult result = explorer.run().value();
  EXPECT_EQ(next, 300u);
  EXPECT_EQ(result.end, End::SpaceExplored);
}

// Random never finishes by itself, so only the clock ends the search.
TEST(Explorer, TimeEndsIt) {
  for (const unsigned workers : {1u, 2u}) {
    Random strategy;
    ExploreOptions options;
    options.seconds = 0.02;
    options.workers = workers;
    uint64_t seen = 0;
    Explorer explorer(strategy, toy_workers(built(lost_update())), options);
    explorer.on_execution = [&](const Task&, const Execution&) { ++seen; };
    bool paused = false;
    explorer.on_pause = [&] { paused = true; };
    const ExploreResult result = explorer.run().value();
    EXPECT_EQ(result.end, End::TimeLimit);
    EXPECT_EQ(result.tasks, seen);
    EXPECT_FALSE(paused) << "tasks are outstanding: there is nothing to save";
  }
}

TEST(Explorer, StopsAfterTheRoundOfTheFirstFailure) {
  ExploreOptions options;
  options.until = ExploreOptions::Until::FirstFailure;
  Random strategy;
  Explorer explorer(strategy, toy_workers(built(lost_update())), options);
  std::vector<uint8_t> state;
  explorer.on_pause = [&] {
    ByteWriter out;
    explorer.save(out);
    state = out.take();
  };
  const ExploreResult result = explorer.run().value();
  EXPECT_EQ(result.end, End::FirstFailure);
  EXPECT_LE(result.tasks, 128u);
  ASSERT_FALSE(state.empty());
  // The failure is found, so a search that continues from here has nothing to do.
  Random fresh;
  Explorer again(fresh, toy_workers(built(lost_update())), options);
  ByteReader in(state);
  ASSERT_TRUE(again.load(in));
  expect_same(again.run().value(), result);
}

TEST(Explorer, ARaceIsNotAFailure) {
  ToyBuilder b;
  b.shared("x").thread("a", "x = 1", {.copies = 2});
  ExploreOptions options;
  options.until = ExploreOptions::Until::FirstFailure;
  Dfs dfs;
  const Explored explored = explore(toy_workers(built(b)), dfs, options);
  ASSERT_EQ(explored.result.found.size(), 1u);
  EXPECT_EQ(explored.result.found[0].verdict.kind, BugKind::DataRace);
  EXPECT_EQ(explored.result.found[0].occurrences, explored.result.executions);
  EXPECT_EQ(explored.result.end, End::SpaceExplored);
}

TEST(Explorer, StopsWhereItIsInterrupted) {
  Random strategy;
  Explorer explorer(strategy, toy_workers(built(lost_update())), {});
  int rounds = 0, pauses = 0;
  explorer.on_round = [&](const ExploreResult&) { return ++rounds < 4; };
  explorer.on_pause = [&] { ++pauses; };
  const ExploreResult result = explorer.run().value();
  EXPECT_EQ(result.end, End::Interrupted);
  EXPECT_EQ(pauses, 1);
  EXPECT_GT(result.tasks, 64u);
}

TEST(Explorer, StopsInTheMiddleOfARound) {
  Random strategy;
  Explorer explorer(strategy, toy_workers(built(lost_update())), {});
  int executions = 0, pauses = 0;
  explorer.on_execution = [&](const Task&, const Execution&) { ++executions; };
  explorer.stop = [&] { return executions == 3; };
  explorer.on_pause = [&] { ++pauses; };
  const ExploreResult result = explorer.run().value();
  EXPECT_EQ(result.end, End::Interrupted);
  EXPECT_EQ(result.tasks, 3u);
  EXPECT_EQ(pauses, 0);
}

TEST(Explorer, CutOffExecutionsAreCountedAndCovered) {
  ToyBuilder b;
  b.shared("x").thread("a", "while x == 0 { }").thread("b", "x = 1");
  ExploreOptions options;
  options.inputs.max_steps = 10;
  Dfs dfs;
  const Explored explored = explore(toy_workers(built(b)), dfs, options);
  EXPECT_GT(explored.result.truncated, 0u);
  EXPECT_GT(explored.result.executions, 0u);
  EXPECT_FALSE(exhausted(explored.result));
}

// A failing machine: like a real one whose target cannot be started, or breaks.
class Faulty : public Machine {
 public:
  enum class Fault : uint8_t { Reset, SomeStarts, Options };
  Faulty(Program program, Fault fault) : inner_(std::move(program)), fault_(fault) {}

  Result<void> reset(const Inputs& inputs) override {
    if (fault_ == Fault::Reset) return error("the target is gone; build it again");
    return inner_.reset(inputs);
  }
  Stop start(EventSink& sink) override {
    if (fault_ == Fault::SomeStarts && ++starts_ % 3 == 0) return Outcome(ToolError{"out of processes"});
    return inner_.start(sink);
  }
  Stop resume(Decision decision) override {
    if (fault_ == Fault::Options && inner_.position().raw == 2) CHECK(false, "two steps are too many");
    return inner_.resume(decision);
  }
  Position position() const override { return inner_.position(); }
  std::vector<Option> blocked() const override { return inner_.blocked(); }
  uint64_t state_hash() const override { return inner_.state_hash(); }
  EndFacts ending() const override { return inner_.ending(); }
  bool hashes_cheaply() const override { return true; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return inner_.names(); }

 private:
  ToyMachine inner_;
  Fault fault_;
  uint64_t starts_ = 0;
};

WorkerFactory faulty(Faulty::Fault fault) {
  return [=]() -> Result<Worker> {
    return Worker{std::make_unique<Faulty>(built(lost_update()), fault), nullptr};
  };
}

TEST(Explorer, ATargetThatNeverRunsIsAFailedSearch) {
  for (const StrategyKind& kind : all_kinds()) {
    SCOPED_TRACE(kind.name);
    const Explored explored = explore(faulty(Faulty::Fault::Reset), *kind.make(), {});
    EXPECT_EQ(explored.result.end, End::Failed);
    EXPECT_EQ(explored.result.failed, explored.result.tasks);
    EXPECT_EQ(explored.result.executions, 0u);
    EXPECT_FALSE(exhausted(explored.result));
    EXPECT_EQ(explored.result.trouble, std::vector<std::string>{"the target is gone; build it again"});
  }
}

TEST(Explorer, ExecutionsThatCouldNotBeMadeAreSaid) {
  for (const StrategyKind& kind : all_kinds()) {
    SCOPED_TRACE(kind.name);
    ExploreOptions options;
    options.schedules = 200;
    const Explored explored = explore(faulty(Faulty::Fault::SomeStarts), *kind.make(), options);
    EXPECT_GT(explored.result.executions, 0u);
    EXPECT_GT(explored.result.failed, 0u);
    EXPECT_EQ(explored.result.tasks,
              explored.result.executions + explored.result.blocked + explored.result.failed);
    EXPECT_EQ(explored.result.trouble, std::vector<std::string>{"out of processes"});
    EXPECT_FALSE(exhausted(explored.result));
  }
}

TEST(Explorer, AWorkerThatCannotBeMadeIsAnError) {
  Dfs dfs;
  unsigned made = 0;
  const auto factory = [&]() -> Result<Worker> {
    if (++made == 2) return error("no second one");
    return toy_workers(built(lost_update()))();
  };
  ExploreOptions options;
  options.workers = 3;
  const Result<ExploreResult> result = Explorer(dfs, factory, options).run();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "no second one");
}

TEST(Explorer, ABrokenInvariantTellsItsSchedule) {
  for (const unsigned workers : {1u, 3u}) {
    ExploreOptions options;
    options.workers = workers;
    RoundRobin strategy(100);
    try {
      explore(faulty(Faulty::Fault::Options), strategy, options);
      FAIL() << "nothing was thrown";
    } catch (const InternalError& failure) {
      const std::string what = failure.what();
      EXPECT_NE(what.find("two steps are too many"), std::string::npos) << what;
      EXPECT_NE(what.find("schedule so far: -@0->1"), std::string::npos) << what;
    }
  }
}

// Each end is reported once, whatever causes it.
TEST(Explorer, ObserversAreToldTheEndOnce) {
  struct Counter : Observer {
    struct Nothing : State {};
    int ends = 0;
    std::atomic<int>* wrong = nullptr;
    void on_accesses(std::span<const Access>, const BatchHeader&) override {}
    void on_event(const Event&) override {}
    void on_end(const Outcome&) override { ++ends; }
    void reset() override { ends = 0; }
    std::unique_ptr<State> save() const override { return std::make_unique<Nothing>(); }
    void restore(const State&) override { ends = 0; }
    void harvest(std::vector<Verdict>&) override { *wrong += ends != 1; }
  };
  std::atomic<int> wrong = 0;
  const auto workers = [&]() -> Result<Worker> {
    auto counter = std::make_unique<Counter>();
    counter->wrong = &wrong;
    return Worker{std::make_unique<ToyMachine>(built(lost_update())), std::move(counter)};
  };
  for (const StrategyKind& kind : exhaustive_kinds()) explore(workers, *kind.make(), {});
  EXPECT_EQ(wrong, 0);
}

// A path of the tree is as long as the execution, so nothing may depend on the size of the stack.
TEST(Explorer, LongExecutionsAreNotTooDeep) {
  ToyBuilder b;
  b.shared("x").shared("y");
  b.thread("a", "for i in 0..60000 { y = i }\nx = 1").thread("b", "x = 2");
  for (const StrategyKind& kind : exhaustive_kinds()) {
    if (!kind.name.starts_with("dpor")) continue;
    ExploreOptions options;
    options.inputs.max_steps = 300'000;
    options.schedules = 2;
    const auto strategy = kind.make();
    const auto workers = [&]() -> Result<Worker> {
      return Worker{std::make_unique<ToyMachine>(built(b)), nullptr};
    };
    const Explored explored = explore(workers, *strategy, options);
    EXPECT_EQ(explored.result.executions, 2u) << kind.name;
    ByteWriter out;
    strategy->save(out);
    const auto other = kind.make();
    ByteReader in(out.bytes());
    EXPECT_TRUE(other->load(in)) << kind.name;
  }
}

}  // namespace
}  // namespace slalom
