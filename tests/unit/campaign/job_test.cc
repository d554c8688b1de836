#include "campaign/job.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

std::string refused(const std::string& text, ChoicePolicy::Where where = ChoicePolicy::Where::Everywhere) {
  const Result<StrategySpec> spec = parse_strategy(text, 1);
  if (!spec.ok()) return spec.error().message;
  ChoicePolicy policy;
  policy.where = where;
  const auto strategy = make_strategy(*spec, policy);
  return strategy.ok() ? "" : strategy.error().message;
}

TEST(Job, EveryStrategyOfTheCatalogueCanBeMade) {
  for (const StrategyInfo& info : strategy_catalogue())
    EXPECT_EQ(refused(std::string(info.name)), "") << info.name;
  for (const char* text :
       {"dpor:coarse", "dpor:bounded", "dpor:limit=2", "dfs:bound=none,cache,unfair",
        "dfs:bound=delays,limit=3", "pct:depth=2,k=40", "random:stretch=9", "surw:interesting=object"})
    EXPECT_EQ(refused(text), "") << text;
}

TEST(Job, MistakesAreNamed) {
  EXPECT_EQ(refused("dfss"),
            "there is no strategy \"dfss\"; choose one of: dpor, dfs, pct, pos, surw, random, portfolio");
  EXPECT_NE(refused("pct:deep=2").find("there is no setting \"deep\""), std::string::npos);
  EXPECT_NE(refused("pct:depth=two").find("a whole number, not \"two\""), std::string::npos);
  EXPECT_NE(refused("pct:depth=0").find("at least 1"), std::string::npos);
  EXPECT_NE(refused("random:stretch=0").find("at least 1"), std::string::npos);
  EXPECT_NE(refused("dfs:").find("an empty setting"), std::string::npos);
  EXPECT_NE(refused("dfs:cache=yes").find("takes no value"), std::string::npos);
  EXPECT_NE(refused("dfs:bound=none,limit=2").find("limit needs a bound"), std::string::npos);
  EXPECT_NE(refused("dpor", ChoicePolicy::Where::Sync).find("dpor:coarse"), std::string::npos);
  EXPECT_EQ(refused("dpor:coarse", ChoicePolicy::Where::Sync), "");
}

TEST(Job, SurvivesBeingSaved) {
  Job job;
  job.target = make_target("toy", "bank", "name = \"bank\"", {{"n", 3}, {"m", -4}});
  job.strategy = parse_strategy("pct:depth=2,k=40", 77).value();
  job.policy.where = ChoicePolicy::Where::Sync;
  job.policy.places = {Place{3}, Place{9}};
  job.max_steps = 1234;
  job.detectors = "race,deadlock";
  ByteWriter out;
  encode(out, job);
  Job other;
  ByteReader in(out.bytes());
  decode(in, other);
  EXPECT_TRUE(in.ok());
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(other, job);
  for (size_t length = 0; length < out.bytes().size(); ++length) {
    ByteReader part(std::span(out.bytes()).first(length));
    Job cut;
    decode(part, cut);
    EXPECT_FALSE(part.ok()) << length;
  }
}

}  // namespace
}  // namespace slalom
