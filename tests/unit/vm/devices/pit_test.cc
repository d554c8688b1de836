#include "vm/devices/pit.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace slalom::vm {
namespace {

Time at_tick(uint64_t tick) {
  return Pit::kClock.time_of(tick);
}

class PitTest : public testing::Test {
 protected:
  void out(uint64_t tick, uint16_t port, uint8_t value) {
    ASSERT_TRUE(pit.write(at_tick(tick), port, value));
  }
  uint8_t in(uint64_t tick, uint16_t port) {
    uint8_t value = 0;
    EXPECT_TRUE(pit.read(at_tick(tick), port, value));
    return value;
  }
  // Programs a channel at a tick: control word, low byte, high byte. Counting starts one tick later.
  void program(uint64_t tick, unsigned channel, unsigned mode, uint16_t count) {
    out(tick, 0x43, static_cast<uint8_t>(channel << 6 | 0x30 | mode << 1));
    out(tick, static_cast<uint16_t>(0x40 + channel), static_cast<uint8_t>(count));
    out(tick, static_cast<uint16_t>(0x40 + channel), static_cast<uint8_t>(count >> 8));
  }
  unsigned latched(uint64_t tick, unsigned channel) {
    out(tick, 0x43, static_cast<uint8_t>(channel << 6));
    const unsigned low = in(tick, static_cast<uint16_t>(0x40 + channel));
    return low | unsigned{in(tick, static_cast<uint16_t>(0x40 + channel))} << 8;
  }
  uint8_t status(uint64_t tick, unsigned channel) {
    out(tick, 0x43, static_cast<uint8_t>(0xe0 | 2u << channel));
    return in(tick, static_cast<uint16_t>(0x40 + channel));
  }
  bool output(uint64_t tick, unsigned channel) { return (status(tick, channel) & 0x80) != 0; }

  Pit pit;
};

TEST(PitClock, IsExact) {
  EXPECT_EQ(Pit::kClock.tick_at(kSecond), 1193182u);
  EXPECT_EQ(Pit::kClock.tick_at(1000 * kSecond - 1), 1193181999u);
  EXPECT_EQ(Pit::kClock.tick_at(1000 * kSecond), 1193182000u);
  for (uint64_t tick : {uint64_t{1}, uint64_t{1000}, uint64_t{1193182}, uint64_t{123456789012}}) {
    EXPECT_EQ(Pit::kClock.tick_at(at_tick(tick)), tick);
    EXPECT_EQ(Pit::kClock.tick_at(at_tick(tick) - 1), tick - 1);
  }
}

TEST_F(PitTest, Mode0RaisesItsOutputOnce) {
  program(10, 0, 0, 5);
  EXPECT_FALSE(pit.line(at_tick(10)));
  EXPECT_EQ(pit.deadline(), at_tick(16));
  EXPECT_EQ(latched(11, 0), 5u);
  EXPECT_EQ(latched(13, 0), 3u);
  EXPECT_FALSE(output(15, 0));
  pit.fire(at_tick(16));
  EXPECT_TRUE(output(16, 0));
  EXPECT_EQ(pit.deadline(), kNever);
  EXPECT_EQ(latched(17, 0), 0xffffu) << "it goes on below zero";
}

TEST_F(PitTest, Mode2IsLowForOneTickOfEachPeriod) {
  program(100, 0, 2, 4);
  std::string wave;
  for (uint64_t tick = 101; tick < 113; ++tick) wave += output(tick, 0) ? '1' : '0';
  EXPECT_EQ(wave, "111011101110");
  std::string counts;
  for (uint64_t tick = 101; tick < 109; ++tick) counts += static_cast<char>('0' + latched(tick, 0));
  EXPECT_EQ(counts, "43214321") << "never zero";
  EXPECT_EQ(pit.deadline(), at_tick(105));
  pit.fire(at_tick(105));
  EXPECT_EQ(pit.deadline(), at_tick(109));
}

TEST_F(PitTest, Mode3IsASquareWaveWithALongerHighHalf) {
  program(0, 0, 3, 5);
  std::string wave, counts;
  for (uint64_t tick = 1; tick < 11; ++tick) {
    wave += output(tick, 0) ? '1' : '0';
    counts += static_cast<char>('0' + latched(tick, 0));
  }
  EXPECT_EQ(wave, "1110011100");
  EXPECT_EQ(counts, "4204242042") << "in steps of two, from an even number, in both halves";
  EXPECT_EQ(pit.deadline(), at_tick(6));
}

TEST_F(PitTest, Mode4StrobesForOneTick) {
  program(0, 0, 4, 3);
  std::string wave;
  for (uint64_t tick = 1; tick < 8; ++tick) wave += output(tick, 0) ? '1' : '0';
  EXPECT_EQ(wave, "1110111");
  EXPECT_EQ(pit.deadline(), at_tick(5));
}

TEST_F(PitTest, Modes1And5WaitForTheGate) {
  program(0, 2, 1, 3);
  EXPECT_TRUE(output(5, 2));
  out(10, 0x61, 1);
  std::string wave;
  for (uint64_t tick = 11; tick < 17; ++tick) wave += output(tick, 2) ? '1' : '0';
  EXPECT_EQ(wave, "000111");
  out(20, 0x61, 0);
  out(21, 0x61, 1);
  out(23, 0x61, 0);
  out(24, 0x61, 1);  // again, before it was over
  EXPECT_FALSE(output(27, 2));
  EXPECT_TRUE(output(28, 2));

  out(30, 0x61, 0);
  program(31, 2, 5, 3);
  EXPECT_TRUE(output(40, 2));
  out(41, 0x61, 1);
  wave.clear();
  for (uint64_t tick = 42; tick < 48; ++tick) wave += output(tick, 2) ? '1' : '0';
  EXPECT_EQ(wave, "111011");
}

TEST_F(PitTest, TheGateHoldsAndRestarts) {
  program(0, 2, 0, 100);
  EXPECT_EQ(latched(50, 2), 100u) << "the gate of channel 2 is off at first";
  out(60, 0x61, 1);
  EXPECT_EQ(latched(70, 2), 90u);
  out(70, 0x61, 0);
  EXPECT_EQ(latched(80, 2), 90u);
  out(80, 0x61, 1);
  EXPECT_EQ(latched(85, 2), 85u);
  program(100, 2, 2, 50);
  EXPECT_EQ(latched(111, 2), 40u);
  out(111, 0x61, 0);
  out(120, 0x61, 1);
  EXPECT_EQ(latched(121, 2), 50u) << "mode 2 begins anew";
}

// As Linux calibrates the TSC: channel 2 in mode 0, waiting for OUT2 in port 61.
TEST_F(PitTest, Port61ShowsTheOutputOfChannel2) {
  out(0, 0x61, 1);
  program(0, 2, 0, 11931);
  EXPECT_EQ(in(11931, 0x61) & 0x20, 0);
  EXPECT_EQ(in(11932, 0x61) & 0x20, 0x20);
  EXPECT_EQ(in(11932, 0x61) & 0x0f, 1);
}

TEST_F(PitTest, TheLatchHoldsUntilRead) {
  program(0, 0, 2, 1000);
  out(101, 0x43, 0x00);
  out(201, 0x43, 0x00);  // ignored, because the first one was not read yet
  EXPECT_EQ(in(301, 0x40), 900 & 0xff);
  EXPECT_EQ(in(301, 0x40), 900 >> 8);
  EXPECT_EQ(in(401, 0x40), 600 & 0xff);
  out(501, 0x43, 0xc2);  // read back both
  EXPECT_EQ(in(601, 0x40), 0x80 | 0x34) << "status comes first";
  EXPECT_EQ(in(601, 0x40), 500 >> 8) << "the high byte is next, as before";
}

TEST_F(PitTest, CountsInBcd) {
  out(0, 0x43, 0x35);
  out(0, 0x40, 0x00);
  out(0, 0x40, 0x10);  // 1000
  EXPECT_EQ(latched(2, 0), 0x0999u);
  EXPECT_EQ(pit.deadline(), at_tick(1001));
}

TEST_F(PitTest, ANewCountWaitsForTheEndOfThePeriod) {
  program(0, 0, 2, 10);
  out(3, 0x40, 4);
  out(3, 0x40, 0);
  EXPECT_EQ(status(3, 0) & 0x40, 0x40) << "not loaded yet";
  EXPECT_EQ(pit.deadline(), at_tick(11));
  pit.fire(at_tick(11));
  EXPECT_EQ(pit.deadline(), at_tick(15));

  program(100, 0, 3, 10);  // high 101 to 105, low 106 to 110
  out(102, 0x40, 4);
  out(102, 0x40, 0);
  std::string wave;
  for (uint64_t tick = 103; tick < 112; ++tick) wave += output(tick, 0) ? '1' : '0';
  EXPECT_EQ(wave, "111001100") << "the old high half, then halves of the new length";
}

TEST_F(PitTest, OneLateLookEqualsManyEarlyOnes) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    const auto mode = static_cast<unsigned>(2 + rng.below(2));
    program(1000, 0, mode, static_cast<uint16_t>(2 + rng.below(50)));
    if (rng.below(2)) {
      out(1005, 0x40, static_cast<uint8_t>(2 + rng.below(50)));
      out(1005, 0x40, 0);
    }
    Pit other = pit;
    const Time end = at_tick(1006 + rng.below(500));
    while (pit.deadline() <= end) pit.fire(pit.deadline());
    other.fire(end);
    EXPECT_EQ(pit.deadline(), other.deadline());
    EXPECT_GT(pit.deadline(), end);
  }
}

}  // namespace
}  // namespace slalom::vm
