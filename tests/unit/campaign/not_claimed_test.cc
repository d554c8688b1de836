// Things that a campaign must not claim: that a replay was the same, that a finding was kept or finished,
// that more was covered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "campaign/campaign.h"
#include "toy/toy_file.h"
#include "toy/toy_machine.h"
#include "unit/base/file_size_limit.h"
#include "unit/base/temporary_directory.h"

namespace slalom {
namespace {

using testing::HasSubstr;

constexpr const char* kLostUpdate = R"(
name = "lost"
[shared]
x = 0
[[thread]]
name = "adder"
copies = 2
code = """
x = x + 1
"""
[final]
check = "x == 2"
message = "an update was lost"
)";

Target lost_update() {
  auto program = std::make_shared<const ToyProgram>(parse_toy(kLostUpdate, "test").value());
  Target target{make_target("toy", program->name, kLostUpdate),
                [program](const MachineUse&) -> Result<std::unique_ptr<Machine>> {
                  return std::unique_ptr<Machine>(std::make_unique<ToyMachine>(program));
                }};
  target.traits.keeps_states = true;
  return target;
}

CampaignResult campaign(const Target& target, const std::string& strategy, const CampaignOptions& options,
                        const std::function<bool(const Progress&)>& progress) {
  Job job;
  job.target = target.id;
  job.strategy = parse_strategy(strategy, 3).value();
  job.detectors = "failure";
  return run_campaign(target, job, options, progress).value();
}

bool never_stops(const Progress&) {
  return true;
}

CampaignOptions few_replays(const std::filesystem::path& store) {
  CampaignOptions options;
  options.store = store;
  options.replays = 2;
  return options;
}

Finding the_finding(const Target& target) {
  const CampaignResult result = campaign(target, "dfs", few_replays({}), never_stops);
  CHECK(result.findings.size() == 1, "{} findings", result.findings.size());
  return result.findings[0].finding;
}

TEST(CampaignClaims, TheSameBugOnAnotherWayIsNotTheSame) {
  const Target target = lost_update();
  const Finding finding = the_finding(target);
  const auto replay = [&](const Finding& changed) {
    return replay_finding(target, changed, changed.policy, nullptr).value();
  };
  ASSERT_TRUE(replay(finding).same());

  Finding longer = finding;  // by a switch that no execution reaches
  const Switch last = finding.schedule.switches.back();
  longer.schedule.switches.push_back({last.to, 1000, last.from});
  Finding another_order = finding;
  another_order.schedule.digest ^= 1;
  Finding another_state = finding;
  another_state.state_hash ^= 1;
  for (const Finding& changed : {longer, another_order, another_state}) {
    const Replay again = replay(changed);
    EXPECT_TRUE(again.verdict.has_value());  // the bug shows all the same
    EXPECT_TRUE(again.divergence.has_value());
    EXPECT_FALSE(again.same());
  }
}

TEST(CampaignClaims, AFindingThatCouldNotBeKeptIsShownAndNamed) {
  const TemporaryDirectory directory;
  const Target target = lost_update();
  const FileSizeLimit full(0);
  const CampaignResult result = campaign(target, "dfs", few_replays(directory / "findings"), never_stops);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_TRUE(result.findings[0].capsule.empty());
  EXPECT_THAT(result.findings[0].report, HasSubstr("an update was lost"));
  ASSERT_TRUE(result.unkept.has_value());
  EXPECT_THAT(result.unkept->message, HasSubstr((directory / "findings").string()));
}

// The lock beside the state takes no room.
TEST(CampaignClaims, ASearchThatCannotBeSavedIsNotBegun) {
  const TemporaryDirectory directory;
  const Target target = lost_update();
  CampaignOptions options = few_replays({});
  options.state = directory / "state";
  Job job;
  job.target = target.id;
  job.strategy = parse_strategy("dfs", 3).value();
  const FileSizeLimit full(0);
  const auto result = run_campaign(target, job, options, never_stops);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr(options.state.string()));
}

TEST(CampaignClaims, TheKeptReportOfAnInterruptedFindingSaysSo) {
  const TemporaryDirectory directory;
  const CampaignResult result =
      campaign(lost_update(), "dfs", few_replays(directory / "findings"),
               [](const Progress& progress) { return progress.doing == Progress::Doing::Searching; });
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].shrinking, CutShort::Interrupted);
  const auto kept = read_file(result.findings[0].capsule.parent_path() / "report.txt");
  ASSERT_TRUE(kept.ok());
  EXPECT_THAT(std::string(kept->begin(), kept->end()), HasSubstr("(interrupted)"));
}

TEST(CampaignClaims, ALimitIsKeptToAndNamed) {
  for (const std::string strategy : {"dpor", "dfs"}) {
    const auto limited = [&](const char* limit) {
      return campaign(lost_update(), strategy + ":limit=" + limit, few_replays({}), never_stops);
    };
    const CampaignResult none = limited("0");
    EXPECT_TRUE(none.findings.empty()) << strategy;  // the bug takes one preemption
    EXPECT_EQ(none.explored.coverage.bound, "preemptions") << strategy;
    EXPECT_EQ(none.explored.coverage.completed, 0u) << strategy;
    EXPECT_EQ(limited("1").findings.size(), 1u) << strategy;
  }
}

}  // namespace
}  // namespace slalom
