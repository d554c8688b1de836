#include "vm/devices/interrupts/pic.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

class PicTest : public testing::Test {
 protected:
  // As Linux, Pintos and most other kernels do it.
  void initialise(uint8_t word4 = 0x01) {
    EXPECT_TRUE(pic.write(0x20, 0x11));
    EXPECT_TRUE(pic.write(0x21, 0x20));
    EXPECT_TRUE(pic.write(0x21, 0x04));
    EXPECT_TRUE(pic.write(0x21, word4));
    EXPECT_TRUE(pic.write(0xa0, 0x11));
    EXPECT_TRUE(pic.write(0xa1, 0x28));
    EXPECT_TRUE(pic.write(0xa1, 0x02));
    EXPECT_TRUE(pic.write(0xa1, word4));
    pic.write(0x21, 0x00);
    pic.write(0xa1, 0x00);
  }
  uint8_t in(uint16_t port) {
    uint8_t value = 0;
    EXPECT_TRUE(pic.read(port, value));
    return value;
  }
  void pulse(unsigned irq) {
    pic.set_line(irq, false);
    pic.set_line(irq, true);
  }
  Pic pic;
};

TEST_F(PicTest, StartsWithEverythingMasked) {
  for (unsigned irq = 1; irq < 16; ++irq) pic.set_line(irq, true);
  EXPECT_FALSE(pic.output());
  EXPECT_EQ(in(0x21), 0xff);
}

TEST_F(PicTest, LowerLinesComeFirstAndHoldOthersBack) {
  initialise();
  pulse(4);
  pulse(1);
  ASSERT_TRUE(pic.output());
  EXPECT_EQ(pic.next_vector(), 0x21);
  EXPECT_EQ(pic.acknowledge(), 0x21);
  EXPECT_FALSE(pic.output()) << "4 waits for the end of 1";
  pulse(0);
  EXPECT_EQ(pic.acknowledge(), 0x20) << "0 nests";
  pic.write(0x20, 0x20);
  EXPECT_FALSE(pic.output());
  pic.write(0x20, 0x0b);
  EXPECT_EQ(in(0x20), 0x02) << "1 is in service";
  pic.write(0x20, 0x0a);
  EXPECT_EQ(in(0x20), 0x10) << "4 is requested";
  pic.write(0x20, 0x61);  // specific end
  EXPECT_EQ(pic.acknowledge(), 0x24);
}

TEST_F(PicTest, TheSlaveInterruptsThroughLine2) {
  initialise();
  pulse(8);
  EXPECT_EQ(pic.acknowledge(), 0x28);
  pulse(3);
  EXPECT_FALSE(pic.output()) << "line 2 is in service and comes before 3";
  pulse(1);
  EXPECT_TRUE(pic.output());
  EXPECT_EQ(pic.acknowledge(), 0x21);
  pic.write(0x20, 0x61);
  pic.write(0xa0, 0x20);
  pic.write(0x20, 0x62);
  EXPECT_EQ(pic.acknowledge(), 0x23);
}

TEST_F(PicTest, MasksHoldRequestsBackWithoutLosingThem) {
  initialise();
  pic.write(0x21, 0x10);
  pulse(4);
  EXPECT_FALSE(pic.output());
  pic.write(0x21, 0x00);
  EXPECT_EQ(pic.acknowledge(), 0x24);
}

TEST_F(PicTest, AnEdgeInterruptsOnceALevelAgainAndAgain) {
  initialise();
  pulse(5);
  pic.acknowledge();
  pic.write(0x20, 0x20);
  EXPECT_FALSE(pic.output());
  pic.write(0x4d0, 0xff);
  EXPECT_EQ(in(0x4d0), 0xf8) << "timer, keyboard and cascade stay edges";
  pic.set_line(6, true);
  EXPECT_EQ(pic.acknowledge(), 0x26);
  pic.write(0x20, 0x20);
  EXPECT_TRUE(pic.output());
  pic.set_line(6, false);
  EXPECT_FALSE(pic.output());
}

TEST_F(PicTest, WithoutARequestTheAnswerIsSpurious) {
  initialise();
  EXPECT_EQ(pic.acknowledge(), 0x27);
  pic.write(0x20, 0x0b);
  EXPECT_EQ(in(0x20), 0) << "a spurious interrupt is not in service";
}

TEST_F(PicTest, AutomaticEnd) {
  initialise(0x03);
  pulse(4);
  EXPECT_EQ(pic.acknowledge(), 0x24);
  pulse(4);
  EXPECT_EQ(pic.acknowledge(), 0x24) << "nothing had to be ended";
}

TEST_F(PicTest, RotationMakesTheEndedLineTheLowest) {
  initialise();
  pulse(3);
  pic.acknowledge();
  pic.write(0x20, 0xa0);  // rotate on non-specific end
  pulse(3);
  pulse(6);
  EXPECT_EQ(pic.acknowledge(), 0x26);
  pic.write(0x20, 0x20);
  pic.write(0x20, 0xc7);  // back to the default order
  pulse(6);
  EXPECT_EQ(pic.acknowledge(), 0x23);
}

TEST_F(PicTest, SpecialMaskModeLetsLowerLinesThrough) {
  initialise();
  pulse(1);
  pic.acknowledge();
  pulse(4);
  EXPECT_FALSE(pic.output());
  pic.write(0x21, 0x02);
  pic.write(0x20, 0x68);
  EXPECT_EQ(pic.acknowledge(), 0x24);
  pulse(5);
  EXPECT_FALSE(pic.output()) << "4 is in service and not masked";
}

TEST_F(PicTest, PollingAndThe8080ModeAreReported) {
  EXPECT_FALSE(pic.write(0x20, 0x0c));
  EXPECT_FALSE(pic.write(0x20, 0x10));
}

}  // namespace
}  // namespace slalom::vm
