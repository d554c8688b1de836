// The claims of a check if its executions did not reach their end, or if some of its code is not seen.
#include <atomic>
#include <thread>

#include "options.h"

namespace {

using slalom::check;
using slalom::CheckCaveat;
using slalom::CheckOptions;
using slalom::CheckResult;

std::string kinds(const CheckResult& result) {
  std::string all;
  for (const CheckCaveat& caveat : result.caveats) all += (all.empty() ? "" : ",") + caveat.kind;
  return all;
}

void add_often(int times) {
  std::atomic<int> counter{0};
  const auto add = [&] {
    for (int i = 0; i < times; ++i) counter.fetch_add(i);
  };
  std::thread first(add), second(add);
  first.join();
  second.join();
}

TEST(CheckClaims, ExecutionsThatAreAllCutOffAreNoSuccess) {
  CheckOptions wanted = options("dfs", 20);
  wanted.max_steps = 100;
  const CheckResult result = check(wanted, [] { add_often(1000); });
  EXPECT_FALSE(result.ok) << result.report;
  EXPECT_FALSE(result.exhausted);
  EXPECT_NE(kinds(result).find("step-limit"), std::string::npos) << kinds(result);
  EXPECT_NE(result.report.find("CheckOptions::max_steps"), std::string::npos) << result.report;
  EXPECT_EQ(result.report.find("xhausted"), std::string::npos) << result.report;
}

TEST(CheckClaims, WhatABoundLeavesOutIsNamed) {
  const CheckResult result = check(options("dfs:limit=1", 0), [] { add_often(2); });
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_TRUE(result.exhausted);
  EXPECT_EQ(kinds(result), "bound");
  EXPECT_NE(result.report.find("exhausted: every schedule with at most 1 preemption"), std::string::npos);
}

// From its 9th execution on, the body is at another place where it was repeated: nothing else of it changes.
TEST(CheckClaims, ABodyThatChangesWhileItIsSearchedIsNotExhausted) {
  CheckOptions wanted = options("dfs", 0);
  wanted.choices = CheckOptions::Choices::Everywhere;
  for (const int changes : {1'000'000, 8}) {
    int calls = 0;
    const CheckResult result = check(wanted, [&] {
      std::atomic<int> x{0}, y{0};
      const bool other = ++calls > changes;
      std::thread thread([&] { x.store(1); });
      if (other)
        y.fetch_add(1);
      else
        x.store(2);
      thread.join();
    });
    EXPECT_GT(calls, 12);
    EXPECT_EQ(result.exhausted, calls <= changes) << result.report;
    EXPECT_EQ(kinds(result).find("not-repeated") == std::string::npos, calls <= changes) << kinds(result);
  }
}

TEST(CheckClaims, WithoutTheRaceDetectorSynchronisationIsNotAll) {
  CheckOptions wanted = options("dfs", 0);
  wanted.races = false;
  const CheckResult result = check(wanted, [] { add_often(1); });
  EXPECT_FALSE(result.exhausted);
  EXPECT_EQ(kinds(result), "races-ignored");
  // Every access is a choice point. There are too many schedules, but few orders of dependent accesses.
  wanted.strategy = "dpor";
  wanted.choices = CheckOptions::Choices::Everywhere;
  EXPECT_TRUE(check(wanted, [] { add_often(1); }).exhausted);
}

}  // namespace
