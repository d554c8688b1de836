// A whole search as a user asks for it: what it keeps, how it continues, and what it reports when it cannot.
#include "campaign/campaign.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/container.h"
#include "base/file.h"
#include "campaign/saved_search.h"
#include "finding/store.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

constexpr const char* kBank = R"(
name = "bank"
[shared]
a = 4
b = 0
[[thread]]
name = "mover"
copies = 2
code = """
r = a
a = r - 1
q = b
b = q + 1
"""
[final]
check = "a + b == 4"
message = "money is gone"
)";

Target toy(const std::string& text) {
  auto program = std::make_shared<const ToyProgram>(parse_toy(text, "test").value());
  Target target{make_target("toy", program->name, text),
                [program](const MachineUse& use) -> Result<std::unique_ptr<Machine>> {
                  const auto mode =
                      use.checkpoints ? ToyMachine::SnapshotMode::On : ToyMachine::SnapshotMode::Off;
                  return std::unique_ptr<Machine>(std::make_unique<ToyMachine>(program, mode));
                }};
  target.traits.keeps_states = true;
  return target;
}

Job job_for(const Target& target, const std::string& strategy) {
  Job job;
  job.target = target.id;
  job.strategy = parse_strategy(strategy, 3).value();
  return job;
}

CampaignOptions options_in(const TemporaryDirectory& directory) {
  CampaignOptions options;
  options.store = directory / "findings";
  options.state = directory / "state.slalom";
  options.replays = 3;
  return options;
}

bool go_on(const Progress&) {
  return true;
}

void expect_same(const CampaignResult& a, const CampaignResult& b) {
  EXPECT_EQ(a.explored.tasks, b.explored.tasks);
  EXPECT_EQ(a.explored.executions, b.explored.executions);
  EXPECT_EQ(a.explored.blocked, b.explored.blocked);
  EXPECT_EQ(a.explored.positions, b.explored.positions);
  EXPECT_EQ(a.explored.classes, b.explored.classes);
  EXPECT_EQ(a.explored.end, b.explored.end);
  EXPECT_EQ(a.explored.coverage.statement, b.explored.coverage.statement);
  ASSERT_EQ(a.findings.size(), b.findings.size());
  for (size_t i = 0; i < a.findings.size(); ++i) EXPECT_EQ(a.findings[i].finding, b.findings[i].finding);
}

class Campaign : public testing::TestWithParam<const char*> {};

TEST_P(Campaign, GoesOnWhereItStopped) {
  const Target target = toy(kBank);
  const Job job = job_for(target, GetParam());
  CampaignOptions whole;
  whole.store.clear();
  whole.schedules = 200;
  whole.replays = 3;
  const CampaignResult expected = run_campaign(target, job, whole, go_on).value();
  ASSERT_FALSE(expected.findings.empty());
  for (const uint64_t first : {1, 64, 90}) {
    TemporaryDirectory directory;
    CampaignOptions options = options_in(directory);
    options.store.clear();
    options.schedules = first;
    const CampaignResult part = run_campaign(target, job, options, go_on).value();
    EXPECT_EQ(part.resumed_tasks, 0u);
    options.schedules = 200;
    options.workers = 2;
    const CampaignResult rest = run_campaign(target, job, options, go_on).value();
    EXPECT_EQ(rest.resumed_tasks, part.explored.tasks);
    expect_same(rest, expected);
    // The search is over: another run does nothing, and reports the same.
    const CampaignResult again = run_campaign(target, job, options, go_on).value();
    EXPECT_EQ(again.resumed_tasks, rest.explored.tasks);
    expect_same(again, expected);
  }
}
INSTANTIATE_TEST_SUITE_P(Strategies, Campaign,
                         testing::Values("dpor", "dpor:coarse", "dpor:limit=2", "dfs", "dfs:bound=delays",
                                         "random", "pct:depth=2", "pos", "surw"));

TEST(CampaignStop, BeforeTheSearchMeansNoExecution) {
  const Target target = toy(kBank);
  CampaignOptions options;
  options.store.clear();
  options.stop = [] { return true; };
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, go_on).value();
  EXPECT_EQ(result.explored.end, ExploreResult::End::Interrupted);
  EXPECT_EQ(result.explored.tasks, 0u);
}

TEST(CampaignState, OfAnotherJobIsRefused) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 10;
  ASSERT_TRUE(run_campaign(target, job_for(target, "pct:depth=2"), options, go_on).ok());
  const auto refused = [&](const Target& other, const Job& job) {
    const auto result = run_campaign(other, job, options, go_on);
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.error().message;
  };
  const std::string expected =
      (directory / "state.slalom").string() +
      ": this is the saved search of another job (pct:depth=2 of bank); give another "
      "--state, or delete it";
  EXPECT_EQ(refused(target, job_for(target, "pct:depth=3")), expected);
  EXPECT_EQ(refused(target, job_for(target, "dpor")), expected);
  Job job = job_for(target, "pct:depth=2");
  job.strategy.seed = 4;
  EXPECT_EQ(refused(target, job), expected);
  job = job_for(target, "pct:depth=2");
  job.policy.where = ChoicePolicy::Where::Sync;
  EXPECT_EQ(refused(target, job), expected);
  job = job_for(target, "pct:depth=2");
  job.max_steps = 7;
  EXPECT_EQ(refused(target, job), expected);
  // A program that was edited meanwhile is another program.
  const Target edited = toy(std::string(kBank) + "# edited\n");
  EXPECT_EQ(refused(edited, job_for(edited, "pct:depth=2")), expected);
}

TEST(CampaignState, ThatIsDamagedIsRefusedWithAdvice) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  for (const char* strategy : {"dpor", "dfs:cache", "surw"}) {
    const Job job = job_for(target, strategy);
    CampaignOptions options = options_in(directory);
    options.state = directory / (std::string("state-") + job.strategy.name);
    options.store.clear();
    options.schedules = 7;
    ASSERT_TRUE(run_campaign(target, job, options, go_on).ok());
    const std::vector<uint8_t> payload = read_container(options.state, FileKind::SearchState).value();
    const auto message = [&](std::span<const uint8_t> bytes) {
      EXPECT_TRUE(write_container(options.state, FileKind::SearchState, bytes).ok());
      const auto result = run_campaign(target, job, options, go_on);
      return result.ok() ? std::string() : result.error().message;
    };
    const std::string expected =
        options.state.string() + ": the saved search cannot be read; delete it to start anew";
    for (const size_t length : {size_t{0}, size_t{3}, payload.size() / 2, payload.size() - 1})
      EXPECT_EQ(message(std::span(payload).first(length)), expected) << length;
    std::vector<uint8_t> longer = payload;
    longer.push_back(0);
    EXPECT_EQ(message(longer), expected);
    EXPECT_EQ(message(payload), "");
  }
  CampaignOptions options = options_in(directory);
  ASSERT_TRUE(write_file(options.state, std::string_view("no search at all")).ok());
  const auto result = run_campaign(target, job_for(target, "dpor"), options, go_on);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find(options.state.string()), std::string::npos) << result.error().message;
}

TEST(CampaignState, ThatCannotBeWrittenIsAnError) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.state = directory / "no";
  options.state /= "such/directory/state";
  const auto searches = [](const Progress&) -> bool { throw std::logic_error("it is searching already"); };
  const auto result = run_campaign(target, job_for(target, "dpor"), options, searches);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("such/directory"), std::string::npos) << result.error().message;
}

TEST(CampaignState, IsForOneSearchAtATime) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 10;
  {
    const auto lock = LockFile::try_lock(options.state).value();
    ASSERT_TRUE(lock.has_value());
    const auto refused = run_campaign(target, job_for(target, "random"), options, go_on);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              options.state.string() +
                  ": another search is using it now; wait for its end, or give another --state");
  }
  EXPECT_TRUE(run_campaign(target, job_for(target, "random"), options, go_on).ok());
  EXPECT_FALSE(std::filesystem::exists(options.state.string() + ".lock"));
}

// The folder disappears during the search, like a full disk. Findings are worth more than the saved state.
TEST(CampaignState, ThatCannotBeWrittenAnyMoreLosesNoFindings) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 300;
  options.state = directory / "folder";
  std::filesystem::create_directory(options.state);
  options.state /= "state";
  bool removed = false;
  options.stop = [&] {
    if (!std::exchange(removed, true)) std::filesystem::remove_all(directory / "folder");
    return false;
  };
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, go_on).value();
  EXPECT_EQ(result.explored.tasks, 300u);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].finding.replays_same, 3u);
  ASSERT_TRUE(result.unsaved.has_value());
  EXPECT_NE(result.unsaved->message.find("folder/state"), std::string::npos) << result.unsaved->message;
}

// A waiting branch shares most of its path with other branches.
TEST(CampaignState, OfADepthFirstSearchHoldsTheFrontierOnly) {
  constexpr const char* kLong = R"(
name = "long"
[shared]
x = { init = 0, atomic = true }
[[thread]]
name = "worker"
copies = 2
code = "for i in 0..400 { x = id }"
)";
  TemporaryDirectory directory;
  const Target target = toy(kLong);
  CampaignOptions options = options_in(directory);
  options.schedules = 100;
  ASSERT_TRUE(run_campaign(target, job_for(target, "dfs"), options, go_on).ok());
  const size_t payload = read_container(options.state, FileKind::SearchState).value().size();
  // 100 executions of 800 choice points. Each has one other branch: a link for either way, a branch, and
  // their digest.
  EXPECT_LT(payload, 100 * 800 * 25u);
  EXPECT_GT(payload, 100 * 400 * 8u);
}

// Work on findings ends at a time limit, and failures come first.
TEST(CampaignFindings, AreListedAtLeastWhenTheTimeIsUp) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.state.clear();
  options.seconds = 0.2;
  options.replays = 4'000'000'000;
  const auto start = std::chrono::steady_clock::now();
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, go_on).value();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ASSERT_GE(result.findings.size(), 2u);
  EXPECT_EQ(result.explored.end, ExploreResult::End::TimeLimit);
  for (const CampaignResult::Kept& kept : result.findings) {
    EXPECT_EQ(kept.replaying, CutShort::OutOfTime);
    EXPECT_GE(kept.finding.replays_tried, 1u);
    EXPECT_NE(kept.report.find("(no more, since the time was up)"), std::string::npos) << kept.report;
  }
}

TEST(CampaignFindings, AreShrunkNoFurtherWhenTheTimeIsUp) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 20;
  options.seconds = 0.5;
  const auto start = std::chrono::steady_clock::now();
  const auto shrinks_for_long = [&](const Progress& progress) {
    const bool shrinks = progress.doing == Progress::Doing::Shrinking;
    while (shrinks && std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500))
      std::this_thread::yield();
    return true;
  };
  const CampaignResult result =
      run_campaign(target, job_for(target, "random"), options, shrinks_for_long).value();
  ASSERT_GE(result.findings.size(), 2u);
  for (const CampaignResult::Kept& kept : result.findings) {
    EXPECT_EQ(kept.shrinking, CutShort::OutOfTime);
    EXPECT_EQ(kept.finding.replays_tried, 1u);
  }
}

TEST(CampaignFindings, RacesAreShrunkAndReplayedWhereAsked) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 100;
  options.prove = CampaignOptions::Prove::Failures;
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, go_on).value();
  ASSERT_GE(result.findings.size(), 2u);
  for (const CampaignResult::Kept& kept : result.findings) {
    const bool failure = kept.finding.verdict.severity == Severity::Failure;
    EXPECT_EQ(kept.finding.replays_tried, failure ? 3u : 0u);
    EXPECT_EQ(kept.finding.minimality != Minimality::Unshrunk, failure);
    EXPECT_EQ(kept.report.find("Not replayed yet (races are with --prove all).") == std::string::npos,
              failure);
    EXPECT_TRUE(std::filesystem::exists(kept.capsule));
  }
}

TEST(CampaignFindings, AreShrunkReplayedAndKept) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  const Job job = job_for(target, "random");
  CampaignOptions options = options_in(directory);
  options.schedules = 100;
  const CampaignResult result = run_campaign(target, job, options, go_on).value();
  ASSERT_GE(result.findings.size(), 2u);
  for (size_t i = 1; i < result.findings.size(); ++i)
    EXPECT_LE(result.findings[i - 1].finding.verdict.severity, result.findings[i].finding.verdict.severity);
  const Finding& worst = result.findings[0].finding;
  EXPECT_EQ(worst.verdict.kind, BugKind::Assertion);
  EXPECT_EQ(worst.minimality, Minimality::Minimum);
  EXPECT_FALSE(worst.constraints.empty());
  EXPECT_LE(worst.schedule.switches.size(), worst.original.switches.size());
  for (const CampaignResult::Kept& kept : result.findings) {
    EXPECT_EQ(kept.finding.replays_tried, 3u);
    EXPECT_EQ(kept.finding.replays_same, 3u);
    EXPECT_TRUE(std::filesystem::exists(kept.capsule));
    EXPECT_FALSE(kept.report.empty());
    for (const auto where :
         {ChoicePolicy::Where::Everywhere, ChoicePolicy::Where::Sync, ChoicePolicy::Where::Nowhere}) {
      ChoicePolicy policy;
      policy.where = where;
      EXPECT_TRUE(replay_finding(target, kept.finding, policy, nullptr).value().same());
    }
  }
  // Another state at the end of the schedule is no successful replay, whatever verdict shows.
  ASSERT_NE(worst.state_hash, 0u);
  EXPECT_EQ(replay_finding(target, worst, {}, nullptr).value().execution.state_hash, worst.state_hash);
  Finding other = worst;
  other.state_hash ^= 1;
  const Replay elsewhere = replay_finding(target, other, {}, nullptr).value();
  EXPECT_TRUE(elsewhere.verdict.has_value());
  EXPECT_FALSE(elsewhere.same());
  EXPECT_NE(elsewhere.divergence.value_or("").find("another state"), std::string::npos);
  // Nor is another execution, although it ends with the same verdict.
  other = worst;
  other.schedule.digest ^= 1;
  const Replay another = replay_finding(target, other, {}, nullptr).value();
  EXPECT_TRUE(another.verdict.has_value());
  EXPECT_FALSE(another.same());
  EXPECT_EQ(another.divergence, "the same switches led to another execution");
  // On a program without the bug, the replay reports a failure.
  std::string fixed = kBank;
  fixed.replace(fixed.find("a + b == 4"), 10, "a + b >= 0");
  EXPECT_FALSE(replay_finding(toy(fixed), worst, {}, nullptr).value().same());
}

// The user stops after the first replay of the first finding.
TEST(CampaignFindings, AreKeptWhenTheUserStopsTheReplays) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 100;
  bool asked = false;
  const auto enough = [&](const Progress& progress) {
    EXPECT_FALSE(asked) << "asked again after the answer";
    asked = progress.doing == Progress::Doing::Replaying && progress.replays == 1;
    return !asked;
  };
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, enough).value();
  ASSERT_GE(result.findings.size(), 2u);
  for (const CampaignResult::Kept& kept : result.findings) {
    EXPECT_EQ(kept.finding.replays_tried, 1u);
    EXPECT_EQ(kept.finding.replays_same, 1u);
    EXPECT_EQ(kept.replaying, CutShort::Interrupted);
    EXPECT_NE(kept.report.find("Replayed 1/1 (interrupted)"), std::string::npos) << kept.report;
    EXPECT_TRUE(std::filesystem::exists(kept.capsule));
    EXPECT_TRUE(replay_finding(target, kept.finding, {}, nullptr).value().same());
  }
  EXPECT_EQ(result.findings[0].finding.minimality, Minimality::Minimum);   // shrunk before that
  EXPECT_EQ(result.findings[1].finding.minimality, Minimality::Unshrunk);  // after it
}

TEST(CampaignFindings, WithoutShrinkingAreAsTheyWereFound) {
  TemporaryDirectory directory;
  const Target target = toy(kBank);
  CampaignOptions options = options_in(directory);
  options.schedules = 100;
  options.shrink = false;
  options.store.clear();
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, go_on).value();
  for (const CampaignResult::Kept& kept : result.findings) {
    EXPECT_EQ(kept.finding.minimality, Minimality::Unshrunk);
    EXPECT_EQ(kept.finding.schedule, kept.finding.original);
    EXPECT_EQ(kept.finding.replays_same, 3u);
    EXPECT_TRUE(kept.capsule.empty());
  }
}

TEST(CampaignFindings, OfATargetThatForgetsNothingDoNotPassForReplayable) {
  TemporaryDirectory directory;
  const Target target = toy(R"(
name = "first-time-only"
[shared]
runs = { init = 0, atomic = true, persistent = true }
[[thread]]
name = "a"
code = """
n = fetch_add(runs, 1)
assert n != 5
"""
)");
  CampaignOptions options = options_in(directory);
  options.schedules = 20;
  options.checkpoints = false;
  const CampaignResult result = run_campaign(target, job_for(target, "random"), options, go_on).value();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_LT(result.findings[0].finding.replays_same, result.findings[0].finding.replays_tried);
  EXPECT_EQ(result.findings[0].finding.minimality, Minimality::Unshrunk);
}

}  // namespace
}  // namespace slalom
