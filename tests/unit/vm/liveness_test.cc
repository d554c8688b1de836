// When a CPU is taken to wait, by each of the heuristics, how long, and how often that is counted.
#include "vm/kernel/liveness.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

using Why = Liveness::Why;

uint64_t count(const Liveness& liveness, Why why) {
  return liveness.counts()[static_cast<size_t>(why)];
}

TEST(Liveness, EveryHaltIsCountedAndEndsWithAnInterrupt) {
  Liveness liveness;
  for (uint64_t i = 1; i <= 3; ++i) {
    liveness.on_halt();
    EXPECT_EQ(liveness.why(), Why::Halt);
    EXPECT_TRUE(liveness.waits_for().empty());  // no write ends it
    liveness.revive();
    EXPECT_TRUE(liveness.live());
    EXPECT_EQ(count(liveness, Why::Halt), i);
  }
  for (const Why other : {Why::Pause, Why::Loop, Why::Starvation}) EXPECT_EQ(count(liveness, other), 0u);
}

TEST(Liveness, WhoHasRunTooLongWaitsUntilTheOthersHaveRun) {
  Liveness liveness;
  liveness.look(Liveness::kStarvation - 1);
  EXPECT_TRUE(liveness.live());
  liveness.look(Liveness::kStarvation);
  EXPECT_EQ(liveness.why(), Why::Starvation);
  EXPECT_EQ(count(liveness, Why::Starvation), 1u);
  liveness.look(Liveness::kStarvation + 1024);  // waits already
  EXPECT_EQ(count(liveness, Why::Starvation), 1u);
  liveness.on_others(Liveness::kPatience - 1);
  liveness.look_at_others();
  EXPECT_FALSE(liveness.live());
  liveness.on_others(1);
  EXPECT_FALSE(liveness.live());  // is decided when somebody looks
  liveness.look_at_others();
  EXPECT_TRUE(liveness.live());
}

TEST(Liveness, OthersDoNotEndAHalt) {
  Liveness liveness;
  liveness.on_halt();
  liveness.on_others(10 * Liveness::kPatience);
  liveness.look_at_others();
  EXPECT_EQ(liveness.why(), Why::Halt);
}

}  // namespace
}  // namespace slalom::vm
