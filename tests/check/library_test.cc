// State that the C++ library would keep between executions of a slalom::check, and must not.
#include <gtest/gtest.h>
#include <slalom/check.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "options.h"

namespace {

using slalom::check;
using slalom::CheckResult;

TEST(CheckLibrary, Barrier) {
  const CheckResult result = check(options("random", 50), [] {
    std::barrier barrier(2);
    std::thread other([&] { barrier.arrive_and_wait(); });
    barrier.arrive_and_wait();
    other.join();
  });
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_EQ(result.executions, 50u);
}

TEST(CheckLibrary, WaitForAtomics) {
  const CheckResult result = check(options("random", 50), [] {
    std::atomic<long> number{0};
    std::atomic_flag flag;
    std::thread other([&] {
      number = 1;
      number.notify_all();
      flag.test_and_set();
      flag.notify_all();
    });
    number.wait(0);
    flag.wait(false);
    other.join();
  });
  EXPECT_TRUE(result.ok) << result.report;
  EXPECT_EQ(result.executions, 50u);
}

// The library polls and yields some times before it sleeps; the other thread may come only later.
TEST(CheckLibrary, AtomicThatNobodyNotifies) {
  const auto hand_over = [](bool notifies) {
    return check(options("portfolio", 500), [notifies] {
      std::atomic<int> number{0};
      std::thread other([&] { number.wait(0); });
      number = 1;
      if (notifies) number.notify_one();
      other.join();
    });
  };
  EXPECT_TRUE(hand_over(true).ok);
  const CheckResult forgotten = hand_over(false);
  ASSERT_FALSE(forgotten.ok);
  EXPECT_EQ(forgotten.findings.at(0).kind, "deadlock") << forgotten.report;
}

// A bug is still found, and replays.
TEST(CheckLibrary, BarrierForTooMany) {
  const CheckResult result = check(options("random", 50), [] {
    std::barrier barrier(3);
    std::thread other([&] { barrier.arrive_and_wait(); });
    barrier.arrive_and_wait();
    other.join();
  });
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.report.find("two executions"), std::string::npos) << result.report;
}

}  // namespace
