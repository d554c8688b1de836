// What executions teach, on its way from a learner through the runner to the search's choice policy.
#include <gtest/gtest.h>

#include "learn/conflicts.h"
#include "unit/explore/under_test.h"

namespace slalom {
namespace {

WorkerFactory learning(const Program& program, ToyMachine::SnapshotMode mode = ToyMachine::SnapshotMode::On,
                       bool learns = true) {
  return [=]() -> Result<Worker> {
    TRY_ASSIGN(Worker worker, toy_workers(program, mode)());
    if (learns) worker.learner = std::make_unique<ConflictLearner>(true);
    return worker;
  };
}

// The update is lost only if a search switches between the load and the store. The locks, which protect
// nothing, let it see that the two threads conflict.
Program update_between_locks() {
  Result<ToyProgram> program = parse_toy(R"toml(
name = "update-between-locks"
[shared]
x = 0
[sync]
m = "mutex"
[[thread]]
name = "worker"
copies = 2
code = """
lock m
unlock m
x = x + 1
lock m
unlock m
"""
[final]
check = "x == 2"
message = "an update was lost"
)toml",
                                         "update.toml");
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : program.error().message);
  return std::make_shared<const ToyProgram>(*std::move(program));
}

bool has_failure(const ExploreResult& result) {
  return std::ranges::any_of(result.found,
                             [](const Found& found) { return found.verdict.severity == Severity::Failure; });
}

TEST(Learning, ASearchThatAdaptsSwitchesWhereAgentsConflict) {
  std::vector<Place> learned[2];
  for (const bool parallel : {false, true}) {
    Random random({.seed = 3});
    ExploreOptions options{.schedules = 300, .workers = parallel ? 3u : 1u};
    options.inputs.policy.where = Where::Sync;
    const ExploreResult result = explore(learning(update_between_locks()), random, options).result;
    learned[parallel] = result.learned;
    EXPECT_TRUE(has_failure(result));
  }
  EXPECT_GE(learned[0].size(), 2u);
  EXPECT_EQ(learned[0], learned[1]);
  Random random({.seed = 3});
  ExploreOptions options{.schedules = 300};
  options.inputs.policy.where = Where::Sync;
  const ExploreResult blind =
      explore(learning(update_between_locks(), ToyMachine::SnapshotMode::On, false), random, options).result;
  EXPECT_TRUE(blind.learned.empty());
  EXPECT_FALSE(has_failure(blind));
}

// With checkpoints, an execution may run only in part. A learner still gets the whole.
TEST(Learning, CheckpointsHideNothing) {
  std::vector<Knowledge> all[2];
  for (const bool snapshots : {false, true}) {
    Dfs dfs(DfsOptions{});
    const auto mode = snapshots ? ToyMachine::SnapshotMode::On : ToyMachine::SnapshotMode::Off;
    Explorer explorer(dfs, learning(example("lost-update"), mode), {.checkpoint_every = 1});
    explorer.on_execution = [&](const Task&, const Execution& execution) {
      all[snapshots].push_back(execution.knowledge);
    };
    ASSERT_TRUE(explorer.run().ok());
  }
  EXPECT_GT(all[0].size(), 5u);
  EXPECT_EQ(all[0], all[1]);
  EXPECT_TRUE(std::ranges::any_of(all[0], [](const Knowledge& one) { return !one.places.empty(); }));
  EXPECT_TRUE(std::ranges::any_of(all[0], [](const Knowledge& one) { return !one.racing.empty(); }));
}

// Alternates between the agents and gives up at a choice point; 0: never.
class GivesUp final : public Walker {
 public:
  explicit GivesUp(uint64_t at) : at_(at) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint&, std::span<const Option> options,
                                           const Execution&) override {
    if (++seen_ == at_) return Abandoned{"enough"};
    return Decision{options[seen_ % options.size()].agent, 0, 0};
  }

 private:
  uint64_t at_, seen_ = 0;
};

TEST(Learning, AnExecutionThatWasGivenUpTeachesNothing) {
  ToyMachine machine(example("lost-update"));
  ConflictLearner learner(false);
  Runner runner(machine, nullptr, {}, &learner);
  GivesUp to_the_end(0);
  const Execution whole = runner.run({}, to_the_end);
  EXPECT_FALSE(whole.knowledge.places.empty());
  GivesUp late(whole.choice_points);
  const Execution most = runner.run({}, late);
  ASSERT_TRUE(std::holds_alternative<Abandoned>(most.outcome));
  EXPECT_FALSE(learner.knowledge().places.empty());
  EXPECT_EQ(most.knowledge, Knowledge{});
}

}  // namespace
}  // namespace slalom
