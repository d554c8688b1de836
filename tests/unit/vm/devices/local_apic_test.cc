#include "vm/devices/interrupts/local_apic.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

enum : unsigned {
  kId = 0x20,
  kTpr = 0x80,
  kPpr = 0xa0,
  kEoi = 0xb0,
  kLdr = 0xd0,
  kDfr = 0xe0,
  kSvr = 0xf0,
  kIsr = 0x100
};
enum : unsigned {
  kTmr = 0x180,
  kIrr = 0x200,
  kEsr = 0x280,
  kIcrLow = 0x300,
  kIcrHigh = 0x310,
  kLvtTimer = 0x320
};
enum : unsigned { kLint0 = 0x350, kLvtError = 0x370, kInitial = 0x380, kCurrent = 0x390, kDivide = 0x3e0 };

class LocalApicTest : public testing::Test {
 protected:
  LocalApicTest() { write(kSvr, 0x1ff); }
  uint32_t read(unsigned offset, Time now = 0) {
    uint32_t value = 0;
    EXPECT_TRUE(apic.read(now, offset, value)) << offset;
    return value;
  }
  LocalApic::Effect write(unsigned offset, uint32_t value, Time now = 0) {
    return apic.write(now, offset, value);
  }

  LocalApic apic{1};
};

TEST_F(LocalApicTest, StartsAsTheManualSays) {
  LocalApic fresh(3);
  uint32_t value = 0;
  ASSERT_TRUE(fresh.read(0, kId, value));
  EXPECT_EQ(value, 0x03000000u);
  ASSERT_TRUE(fresh.read(0, kSvr, value));
  EXPECT_EQ(value, 0xffu);
  ASSERT_TRUE(fresh.read(0, kDfr, value));
  EXPECT_EQ(value, 0xffffffffu);
  ASSERT_TRUE(fresh.read(0, kLint0, value));
  EXPECT_EQ(value, 0x10000u);
  ASSERT_TRUE(fresh.read(0, 0x30, value));
  EXPECT_EQ(value >> 16 & 0xff, 5u) << "six local vectors";
  EXPECT_FALSE(fresh.passes_external());
  EXPECT_TRUE(LocalApic(0).passes_external()) << "the boot CPU is in virtual wire mode";
}

// The manual's figure "processor priority": the higher class of the task priority and the interrupt in
// service.
TEST_F(LocalApicTest, PriorityHoldsRequestsBack) {
  write(kTpr, 0x45);
  EXPECT_EQ(read(kPpr), 0x45u);
  apic.request(0x4f, false);
  EXPECT_EQ(apic.ready_vector(), -1) << "same class as the task priority";
  apic.request(0x51, false);
  EXPECT_EQ(apic.ready_vector(), 0x51);
  EXPECT_EQ(apic.acknowledge(), 0x51);
  EXPECT_EQ(read(kPpr), 0x50u);
  EXPECT_EQ(read(kIsr + 0x20), 1u << 17);
  EXPECT_EQ(read(kIrr + 0x20), 1u << 15) << "4f still waits";
  apic.request(0x5f, false);
  EXPECT_EQ(apic.ready_vector(), -1) << "the class in service holds back its whole class";
  apic.request(0x60, false);
  EXPECT_EQ(apic.acknowledge(), 0x60) << "nested";
  write(kEoi, 0);
  EXPECT_EQ(read(kPpr), 0x50u) << "the highest in service ended";
  write(kEoi, 0);
  EXPECT_EQ(apic.ready_vector(), 0x5f);
  write(kTpr, 0);
  apic.acknowledge();
  write(kEoi, 0);
  EXPECT_EQ(apic.acknowledge(), 0x4f);
  EXPECT_EQ(apic.acknowledge(), 0xff) << "nothing left: the spurious vector, which is not in service";
  EXPECT_EQ(read(kIsr + 0x70), 0u);
}

TEST_F(LocalApicTest, OnlyLevelInterruptsEndAtTheIoApic) {
  apic.request(0x31, true);
  apic.request(0x32, false);
  EXPECT_EQ(read(kTmr + 0x10), 1u << 17);
  apic.acknowledge();
  EXPECT_EQ(write(kEoi, 0).end_of_level_vector, std::nullopt);
  apic.acknowledge();
  EXPECT_EQ(write(kEoi, 0).end_of_level_vector, 0x31);
}

TEST_F(LocalApicTest, OneShotTimerCountsDownOnce) {
  write(kLvtTimer, 0x40);
  write(kDivide, 0x3);  // by 16
  write(kInitial, 100, 1000);
  EXPECT_EQ(apic.deadline(), 1000u + 1600);
  EXPECT_EQ(read(kCurrent, 1000), 100u);
  EXPECT_EQ(read(kCurrent, 1001), 100u);
  EXPECT_EQ(read(kCurrent, 1016), 99u);
  EXPECT_EQ(read(kCurrent, 2599), 1u);
  apic.fire(2600);
  EXPECT_EQ(apic.ready_vector(), 0x40);
  EXPECT_EQ(read(kCurrent, 2600), 0u);
  EXPECT_EQ(apic.deadline(), kNever);
}

TEST_F(LocalApicTest, PeriodicTimerKeepsItsPhase) {
  write(kLvtTimer, 0x20040);
  write(kDivide, 0xb);  // by 1
  write(kInitial, 1000, 0);
  apic.fire(1000);
  EXPECT_EQ(apic.deadline(), 2000u);
  apic.fire(4500);
  EXPECT_EQ(apic.deadline(), 5000u);
  EXPECT_EQ(read(kCurrent, 4600), 400u);
  write(kInitial, 0, 4700);
  EXPECT_EQ(apic.deadline(), kNever);
}

TEST_F(LocalApicTest, AllDivisorsOfTheManual) {
  constexpr uint32_t codes[] = {0x0, 0x1, 0x2, 0x3, 0x8, 0x9, 0xa, 0xb};
  constexpr uint64_t divisors[] = {2, 4, 8, 16, 32, 64, 128, 1};
  write(kLvtTimer, 0x40);
  for (int i = 0; i < 8; ++i) {
    write(kDivide, codes[i]);
    write(kInitial, 10, 500);
    EXPECT_EQ(apic.deadline(), 500 + 10 * divisors[i]) << codes[i];
  }
}

TEST_F(LocalApicTest, AMaskedTimerCountsButDoesNotInterrupt) {
  write(kLvtTimer, 0x30040);
  write(kDivide, 0xb);
  write(kInitial, 1000, 0);
  EXPECT_EQ(apic.deadline(), kNever);
  EXPECT_EQ(read(kCurrent, 2300), 700u);
  write(kLvtTimer, 0x20040, 2400);
  EXPECT_EQ(apic.ready_vector(), -1) << "what passed behind the mask is gone";
  EXPECT_EQ(apic.deadline(), 3000u);
}

TEST_F(LocalApicTest, TscDeadlineIsNotImplemented) {
  EXPECT_FALSE(write(kLvtTimer, 0x40040).known);
}

TEST_F(LocalApicTest, LogicalDestinations) {
  write(kLdr, 0x04000000);
  EXPECT_TRUE(apic.is_target(true, 0x06));
  EXPECT_FALSE(apic.is_target(true, 0x0b));
  EXPECT_TRUE(apic.is_target(true, 0xff));
  write(kDfr, 0x0fffffff);  // clusters
  write(kLdr, 0x24000000);  // cluster 2, member 4
  EXPECT_TRUE(apic.is_target(true, 0x2c));
  EXPECT_FALSE(apic.is_target(true, 0x2b));
  EXPECT_FALSE(apic.is_target(true, 0x1c));
  EXPECT_TRUE(apic.is_target(true, 0xff));
  EXPECT_TRUE(apic.is_target(false, 1));
  EXPECT_TRUE(apic.is_target(false, 0xff));
  EXPECT_FALSE(apic.is_target(false, 2));
}

TEST_F(LocalApicTest, TheCommandRegisterSends) {
  write(kIcrHigh, 0x02000000);
  const auto effect = write(kIcrLow, 0x000008fd);
  ASSERT_TRUE(effect.message);
  EXPECT_EQ(*effect.message,
            (ApicMessage{.delivery = Delivery::Fixed, .vector = 0xfd, .logical = true, .destination = 2}));
  EXPECT_EQ(read(kIcrLow), 0x8fdu);
  EXPECT_EQ(write(kIcrLow, 0x4500).message->delivery, Delivery::Init);
  EXPECT_FALSE(write(kIcrLow, 0x8500).message) << "INIT de-assert";
  EXPECT_EQ(write(kIcrLow, 0xc0840).message->shorthand, Shorthand::Others);
  EXPECT_FALSE(write(kIcrLow, 0x200).known) << "SMI";
}

TEST_F(LocalApicTest, ErrorsAreLatchedByAWrite) {
  write(kLvtError, 0xfe);
  EXPECT_FALSE(write(kIcrLow, 0x0f).message) << "vectors below 16 do not exist";
  EXPECT_EQ(read(kEsr), 0u);
  EXPECT_EQ(apic.ready_vector(), 0xfe);
  apic.request(0x05, false);
  write(kEsr, 0);
  EXPECT_EQ(read(kEsr), 0x60u);
  write(kEsr, 0);
  EXPECT_EQ(read(kEsr), 0u);
}

TEST_F(LocalApicTest, SoftwareDisableMasksLocalVectorsAndRefusesInterrupts) {
  write(kLvtTimer, 0x40);
  write(kSvr, 0xff);
  EXPECT_EQ(read(kLvtTimer), 0x10040u);
  write(kLvtTimer, 0x41);
  EXPECT_EQ(read(kLvtTimer), 0x10041u);
  apic.request(0x50, false);
  EXPECT_EQ(apic.ready_vector(), -1);
  apic.request_nmi();
  EXPECT_TRUE(apic.take_nmi()) << "NMIs still come through";
}

TEST_F(LocalApicTest, InitComesBeforeStartupAndResets) {
  apic.request(0x50, false);
  apic.request_init();
  apic.request_startup(0x9a);
  apic.request_startup(0x77);
  EXPECT_EQ(apic.take_signal(), (CpuSignal{CpuSignal::Kind::Init, 0}));
  EXPECT_EQ(apic.ready_vector(), -1);
  EXPECT_EQ(read(kSvr), 0xffu);
  EXPECT_EQ(read(kId), 0x01000000u);
  EXPECT_EQ(apic.take_signal(), (CpuSignal{CpuSignal::Kind::Startup, 0x9a})) << "the first one counts";
  EXPECT_EQ(apic.take_signal(), CpuSignal{});
  apic.request_startup(0x11);
  apic.request_init();
  EXPECT_EQ(apic.take_signal().kind, CpuSignal::Kind::Init);
  EXPECT_EQ(apic.take_signal(), CpuSignal{}) << "an INIT after a SIPI takes it back";
}

}  // namespace
}  // namespace slalom::vm
