// Runs without control, and the preliminary search that comes before everything else.
#include "campaign/stress.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "campaign/campaign.h"
#include "explore/in_order.h"
#include "explore/strategies/serial.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"

namespace slalom {
namespace {

// Only the second thread breaks it, if it is first.
constexpr const char* kFirstCounts = R"(
name = "first-counts"
[shared]
first = 0
[[thread]]
name = "one"
code = """
if first == 0 {
  first = 1
}
"""
[[thread]]
name = "two"
code = """
if first == 0 {
  first = 2
}
"""
[final]
check = "first == 1"
message = "two was first"
)";

// A toy program that goes on by itself: in order, from the agent that begins.
class FreeToy final : public Machine {
 public:
  explicit FreeToy(std::shared_ptr<const ToyProgram> program) : toy_(std::move(program)) {}
  Result<void> reset(const Inputs& inputs) override {
    free_ = inputs.control == Control::None;
    Inputs controlled = inputs;
    controlled.control = Control::Search;
    return toy_.reset(controlled);
  }
  Stop start(EventSink& sink) override { return toy_.start(sink); }
  Stop resume(Decision decision) override {
    CHECK(!free_ || decision.forecast.keep >= 1, "a first turn of no operations");
    decision.forecast.keep = 0;
    Stop stop = toy_.resume(decision);
    while (free_ && std::holds_alternative<ChoicePoint>(stop)) {
      const ChoicePoint& point = std::get<ChoicePoint>(stop);
      stop = toy_.resume({.next = next_in_order(point, point.options()).agent});
    }
    return stop;
  }
  Position position() const override { return toy_.position(); }
  std::vector<Option> blocked() const override { return toy_.blocked(); }
  EndFacts ending() const override { return toy_.ending(); }
  uint64_t state_hash() const override { return toy_.state_hash(); }
  bool hashes_cheaply() const override { return toy_.hashes_cheaply(); }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return toy_.names(); }

 private:
  ToyMachine toy_;
  bool free_ = false;
};

Target first_counts() {
  auto program = std::make_shared<const ToyProgram>(parse_toy(kFirstCounts, "test").value());
  Target target;
  target.id = make_target("toy", program->name, kFirstCounts);
  target.make_machine = [program](const MachineUse&) -> Result<std::unique_ptr<Machine>> {
    return std::unique_ptr<Machine>(std::make_unique<FreeToy>(program));
  };
  target.defaults.max_steps = 1'000;
  target.traits.free_turn = 10;
  return target;
}

TEST(Stress, CountsFailuresByTitleOnAnyNumberOfWorkers) {
  uint64_t expected = 0;
  for (uint64_t run = 0; run < 150; ++run) expected += Rng(5, run).below(2) == 1;
  ASSERT_GT(expected, 0u);
  for (const unsigned workers : {1u, 3u}) {
    const StressResult result =
        run_stress(first_counts(), {.runs = 150, .seed = 5, .detectors = "failure", .workers = workers})
            .value();
    EXPECT_EQ(result.runs, 150u);
    EXPECT_EQ(result.failures, expected);
    ASSERT_EQ(result.titles.size(), 1u);
    EXPECT_NE(result.titles.begin()->first.find("two was first"), std::string::npos);
    EXPECT_EQ(result.titles.begin()->second, expected);
  }
}

TEST(Stress, RunsThatReachTheLimitAreFailures) {
  Target target = first_counts();
  target.defaults.max_steps = 1;
  const StressResult result = run_stress(target, {.runs = 10, .detectors = "failure"}).value();
  EXPECT_EQ(result.failures, 10u);
  EXPECT_TRUE(result.titles.empty());
}

TEST(Stress, IsRefusedIfTheTargetNeedsControl) {
  Target target = first_counts();
  target.traits.free_turn = 0;
  EXPECT_FALSE(run_stress(target, {.runs = 10, .detectors = "failure"}).ok());
}

// Executes all orders of the two threads, and counts them.
class CountedOrders final : public Preliminary {
 public:
  explicit CountedOrders(const Target& target) : make_machine_(target.make_machine) {}
  std::unique_ptr<Strategy> begin() override {
    if (std::exchange(begun, true)) return nullptr;
    return std::make_unique<Serial>(SerialOptions{});
  }
  Inputs inputs() const override { return {.policy = {.where = ChoicePolicy::Where::Nowhere}}; }
  Result<Worker> make_worker() override {
    Worker worker;
    TRY_ASSIGN(worker.machine, make_machine_({}));
    return worker;
  }
  void end(const ExploreResult& result) override {
    ++ends;
    orders += result.tasks;
    exhausted = result.coverage.exhausted;
  }
  bool begun = false, exhausted = false;
  uint64_t ends = 0, orders = 0;

 private:
  decltype(Target::make_machine) make_machine_;
};

TEST(PreliminarySearch, PrecedesCampaignsReplaysAndStressOnce) {
  Target target = first_counts();
  const auto counted = std::make_shared<CountedOrders>(target);
  target.preliminary = counted;
  target.reports.compared = [counted] { return ComparedResults{counted->orders, {}}; };
  Job job;
  job.target = target.id;
  job.strategy = parse_strategy("dfs", 1).value();
  job.detectors = "failure";
  CampaignOptions options;
  options.store.clear();
  options.replays = 2;
  const CampaignResult result =
      run_campaign(target, job, options, [](const Progress&) { return true; }).value();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(counted->orders, 2u);  // no call is named, so only the threads' order counts
  EXPECT_TRUE(counted->exhausted);
  EXPECT_EQ(result.compared.serial_orders, 2u);
  EXPECT_TRUE(run_stress(target, {.runs = 5, .detectors = "failure"}).ok());
  EXPECT_EQ(counted->ends, 1u);

  for (const bool replays : {true, false}) {
    Target again = first_counts();
    const auto once = std::make_shared<CountedOrders>(again);
    again.preliminary = once;
    if (replays) {
      EXPECT_TRUE(replay_finding(again, result.findings[0].finding, {}, nullptr).value().same());
    } else {
      EXPECT_TRUE(run_stress(again, {.runs = 5, .detectors = "failure"}).ok());
    }
    EXPECT_EQ(once->orders, 2u);
  }
}

TEST(PreliminarySearch, EndsWhenTheUserStops) {
  Target target = first_counts();
  const auto counted = std::make_shared<CountedOrders>(target);
  target.preliminary = counted;
  EXPECT_TRUE(run_preliminary(target, [] { return true; }).ok());
  EXPECT_EQ(counted->ends, 1u);
  EXPECT_EQ(counted->orders, 0u);
  EXPECT_FALSE(counted->exhausted);
}

}  // namespace
}  // namespace slalom
