// When each heuristic guesses that a CPU waits, how long, and how it is counted.
#include "vm/control/liveness.h"

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
  liveness.examine(Liveness::kStarvation - 1);
  EXPECT_TRUE(liveness.live());
  liveness.examine(Liveness::kStarvation);
  EXPECT_EQ(liveness.why(), Why::Starvation);
  EXPECT_EQ(count(liveness, Why::Starvation), 1u);
  liveness.examine(Liveness::kStarvation + 1024);  // already waiting
  EXPECT_EQ(count(liveness, Why::Starvation), 1u);
  liveness.on_others_ran(Liveness::kPatience - 1);
  liveness.end_starvation();
  EXPECT_FALSE(liveness.live());
  liveness.on_others_ran(1);
  EXPECT_FALSE(liveness.live());  // decided by end_starvation()
  liveness.end_starvation();
  EXPECT_TRUE(liveness.live());
}

TEST(Liveness, OthersDoNotEndAHalt) {
  Liveness liveness;
  liveness.on_halt();
  liveness.on_others_ran(10 * Liveness::kPatience);
  liveness.end_starvation();
  EXPECT_EQ(liveness.why(), Why::Halt);
}

Access load(uint64_t pc, uint64_t address, uint64_t value, Modify modify = Modify::None) {
  Access access{};
  access.pc_bits = pc;
  access.address_bits = address;
  access.value = value;
  access.size = 4;
  access.modify_bits = static_cast<uint8_t>(modify);
  access.op_bits = static_cast<uint8_t>(modify == Modify::None              ? OpKind::Load
                                        : modify == Modify::CompareExchange ? OpKind::CompareExchange
                                                                            : OpKind::ReadModifyWrite);
  return access;
}
Access store(uint64_t pc, uint64_t address, uint64_t value, Modify modify = Modify::None) {
  Access access = load(pc, address, value, modify);
  if (modify == Modify::None) access.op_bits = static_cast<uint8_t>(OpKind::Store);
  access.wrote = 1;
  return access;
}

// How a loop with these accesses is classified. `round` returns the accesses of one round.
template <class Round>
Liveness after_loop(unsigned rounds, Round round) {
  Liveness liveness;
  for (unsigned i = 0; i < rounds; ++i) liveness.on_accesses(round(i));
  liveness.examine(1024);
  return liveness;
}

using Loop = std::vector<Access>;

TEST(Liveness, ALoopThatReadsTheSameValuesWaitsForThem) {
  const auto round = [](unsigned) { return Loop{load(1, 0x100, 7), load(2, 0x200, 8)}; };
  EXPECT_TRUE(after_loop(Liveness::kRounds - 1, round).live());
  const Liveness liveness = after_loop(Liveness::kRounds, round);
  EXPECT_EQ(liveness.why(), Why::Loop);
  EXPECT_EQ(liveness.waits_for(), (std::vector<uint64_t>{0x100, 0x200}));
}

TEST(Liveness, ALoopThatReadsOtherValuesGetsOn) {
  EXPECT_TRUE(after_loop(100, [](unsigned i) { return Loop{load(1, 0x100, i), load(2, 0x200, 8)}; }).live());
}

TEST(Liveness, ALoopThatReadsOtherAddressesGetsOn) {
  EXPECT_TRUE(after_loop(100, [](unsigned i) { return Loop{load(1, 0x100 + 8 * i, 0)}; }).live());
}

TEST(Liveness, ALoopThatWritesGetsOn) {
  // Even if it always writes the same value, as a loop that sends messages does.
  EXPECT_TRUE(after_loop(100, [](unsigned) { return Loop{store(1, 0x100, 1), load(2, 0x200, 8)}; }).live());
  EXPECT_TRUE(after_loop(100, [](unsigned) { return Loop{load(1, 0x200, 8), store(2, 0x200, 8)}; }).live());
}

TEST(Liveness, ALoopThatExchangesAndChangesSomethingGetsOn) {
  const auto round = [](unsigned i) {
    return Loop{load(1, 0x100, i % 2, Modify::Exchange), store(1, 0x100, (i + 1) % 2, Modify::Exchange)};
  };
  EXPECT_TRUE(after_loop(100, round).live());
}

Loop failed_exchange() {
  return {load(1, 0x100, 1, Modify::Exchange), store(1, 0x100, 1, Modify::Exchange)};
}

TEST(Liveness, ALoopOfExchangesThatFailWaits) {
  const auto round = [](unsigned) { return failed_exchange(); };
  EXPECT_TRUE(after_loop(Liveness::kRounds - 1, round).live());
  const Liveness liveness = after_loop(Liveness::kRounds, round);
  EXPECT_EQ(liveness.why(), Why::Loop);
  EXPECT_EQ(liveness.waits_for(), std::vector<uint64_t>{0x100});
}

TEST(Liveness, AnExchangeMayBeToldInTwoBatches) {
  Liveness liveness;
  for (unsigned i = 0; i < Liveness::kRounds; ++i)
    for (const Access& half : failed_exchange()) liveness.on_accesses(std::span(&half, 1));
  liveness.examine(1024);
  EXPECT_EQ(liveness.why(), Why::Loop);
}

TEST(Liveness, ALoopOfCompareExchangesThatFailWaits) {
  const auto round = [](unsigned) { return Loop{load(1, 0x100, 1, Modify::CompareExchange)}; };
  EXPECT_EQ(after_loop(Liveness::kRounds, round).why(), Why::Loop);
}

TEST(Liveness, AStoreOfWhatWasReadIsKnownToChangeNothing) {
  Liveness liveness;
  EXPECT_FALSE(liveness.changed_nothing(1, 0x100));
  liveness.on_accesses(failed_exchange());
  EXPECT_TRUE(liveness.changed_nothing(1, 0x100));
  EXPECT_FALSE(liveness.changed_nothing(2, 0x100));
  EXPECT_FALSE(liveness.changed_nothing(1, 0x108));
  liveness.on_accesses(Loop{store(1, 0x100, 0)});
  EXPECT_FALSE(liveness.changed_nothing(1, 0x100));
}

}  // namespace
}  // namespace slalom::vm
