#include "vm/devices/rtc.h"

#include <gtest/gtest.h>

#include <ctime>

#include "base/rng.h"

namespace slalom::vm {
namespace {

constexpr uint64_t kLeapDayEve = 1'582'934'398;  // 28 February 2020, 23:59:58; the next day is a leap day
enum : uint8_t {
  kSeconds = 0,
  kMinutes = 2,
  kHours = 4,
  kWeekday = 6,
  kDay = 7,
  kMonth = 8,
  kYear = 9,
  kCentury = 0x32
};

TEST(Calendar, AgreesWithTheSystemLibrary) {
  Rng rng(3);
  for (int i = 0; i < 20000; ++i) {
    const auto seconds = static_cast<std::time_t>(rng.below(8'000'000'000));
    std::tm expected{};
    gmtime_r(&seconds, &expected);
    const Date date = date_of(seconds);
    ASSERT_EQ(date.year, expected.tm_year + 1900);
    ASSERT_EQ(date.month, static_cast<unsigned>(expected.tm_mon + 1));
    ASSERT_EQ(date.day, static_cast<unsigned>(expected.tm_mday));
    ASSERT_EQ(date.hour, static_cast<unsigned>(expected.tm_hour));
    ASSERT_EQ(date.minute, static_cast<unsigned>(expected.tm_min));
    ASSERT_EQ(date.second, static_cast<unsigned>(expected.tm_sec));
    ASSERT_EQ(date.weekday, static_cast<unsigned>(expected.tm_wday + 1));
    ASSERT_EQ(unix_seconds(date), seconds);
  }
}

class RtcTest : public testing::Test {
 protected:
  uint8_t get(uint8_t index, Time now) {
    EXPECT_TRUE(rtc.write(now, 0x70, index));
    uint8_t value = 0;
    EXPECT_TRUE(rtc.read(now, 0x71, value));
    return value;
  }
  void set(uint8_t index, uint8_t value, Time now) {
    EXPECT_TRUE(rtc.write(now, 0x70, index));
    EXPECT_TRUE(rtc.write(now, 0x71, value));
  }
  Rtc rtc{kLeapDayEve, 64 << 20};
};

TEST_F(RtcTest, AdvancesWithVirtualTimeInBcd) {
  EXPECT_EQ(get(kSeconds, 0), 0x58);
  EXPECT_EQ(get(kHours, kSecond), 0x23);
  const Time midnight = 2 * kSecond;
  EXPECT_EQ(get(kSeconds, midnight - 1), 0x59);
  EXPECT_EQ(get(kSeconds, midnight), 0x00);
  EXPECT_EQ(get(kDay, midnight), 0x29);
  EXPECT_EQ(get(kMonth, midnight), 0x02);
  EXPECT_EQ(get(kYear, midnight), 0x20);
  EXPECT_EQ(get(kCentury, midnight), 0x20);
  EXPECT_EQ(get(kWeekday, midnight), 7) << "a Saturday";
  EXPECT_EQ(get(0x0d, 0), 0x80);
}

TEST_F(RtcTest, BinaryAndTwelveHours) {
  set(0x0b, 0x04, 0);
  EXPECT_EQ(get(kSeconds, 0), 58);
  EXPECT_EQ(get(kHours, 0), 0x80 | 11);
  EXPECT_EQ(get(kHours, 2 * kSecond), 12) << "midnight is 12 AM";
  set(0x0b, 0x02, 0);
  EXPECT_EQ(get(kHours, 0), 0x23);
}

TEST_F(RtcTest, AnnouncesUpdatesShortlyBefore) {
  EXPECT_EQ(get(0x0a, kSecond / 2), 0x26);
  EXPECT_EQ(get(0x0a, kSecond - 244'001), 0x26);
  EXPECT_EQ(get(0x0a, kSecond - 244'000), 0xa6);
  EXPECT_EQ(get(0x0a, kSecond), 0x26);
}

// As Linux does: stop, reset the divider, write, continue.
TEST_F(RtcTest, TheTimeCanBeSet) {
  const Time now = 7 * kSecond + 123;
  set(0x0b, 0x82, now);
  set(0x0a, 0x76, now);
  EXPECT_EQ(get(kSeconds, now + 9 * kSecond), 0x05) << "stands still";
  const std::pair<uint8_t, uint8_t> fields[] = {{kYear, 0x99},   {kCentury, 0x19}, {kMonth, 0x12},
                                                {kDay, 0x31},    {kHours, 0x23},   {kMinutes, 0x59},
                                                {kSeconds, 0x59}};
  for (const auto& [index, value] : fields) set(index, value, now);
  set(0x0b, 0x02, now);
  EXPECT_EQ(get(kSeconds, now + kSecond), 0x59) << "the divider is still held";
  set(0x0a, 0x26, now + kSecond);
  EXPECT_EQ(get(kSeconds, now + kSecond + kSecond / 2 - 1), 0x59);
  EXPECT_EQ(get(kSeconds, now + kSecond + kSecond / 2), 0x00) << "the first second is half as long";
  EXPECT_EQ(get(kYear, now + 2 * kSecond), 0x00);
  EXPECT_EQ(get(kCentury, now + 2 * kSecond), 0x20);
}

TEST_F(RtcTest, ImpossibleDatesDoNoHarm) {
  set(0x0b, 0x86, 0);
  for (const uint8_t index : {kSeconds, kMinutes, kHours, kDay, kMonth, kYear, kCentury}) set(index, 0xff, 0);
  set(0x0b, 0x06, 0);
  EXPECT_LE(get(kMonth, 0), 12);
  EXPECT_LE(get(kSeconds, 0), 59);
}

TEST_F(RtcTest, UpdateInterruptsEverySecondOnceRead) {
  EXPECT_EQ(rtc.deadline(), kNever);
  set(0x0b, 0x12, kSecond / 2);
  EXPECT_EQ(rtc.deadline(), kSecond);
  rtc.fire(kSecond);
  EXPECT_TRUE(rtc.line());
  EXPECT_EQ(rtc.deadline(), kNever) << "until register C is read";
  EXPECT_EQ(get(0x0c, kSecond + 5) & 0xb0, 0x90);
  EXPECT_FALSE(rtc.line());
  EXPECT_EQ(get(0x0c, kSecond + 6) & 0xb0, 0);
  EXPECT_EQ(rtc.deadline(), 2 * kSecond);
}

TEST_F(RtcTest, PeriodicInterruptsAreExact) {
  set(0x0a, 0x26, 0);  // 1024 Hz
  set(0x0b, 0x42, 0);
  unsigned count = 0;
  while (rtc.deadline() <= 10 * kSecond) {
    const Time now = rtc.deadline();
    rtc.fire(now);
    ASSERT_TRUE(rtc.line());
    EXPECT_EQ(get(0x0c, now) & 0xc0, 0xc0);
    ++count;
  }
  EXPECT_EQ(count, 10240u);
  set(0x0a, 0x23, 10 * kSecond);
  EXPECT_EQ(rtc.deadline(), 10 * kSecond + 122071) << "8192 Hz: 122.07 microseconds";
  set(0x0a, 0x21, 10 * kSecond);
  EXPECT_EQ(rtc.deadline(), 10 * kSecond + 3906250) << "the fastest code is 256 Hz";
}

TEST_F(RtcTest, AlarmMatchesOrMatchesAnything) {
  set(1, 0x01, 0);
  set(3, 0x00, 0);
  set(5, 0x00, 0);
  set(0x0b, 0x22, 0);
  EXPECT_EQ(rtc.deadline(), 3 * kSecond) << "00:00:01";
  set(5, 0xc0, 0);
  set(3, 0xff, 0);
  set(1, 0x59, 0);
  EXPECT_EQ(rtc.deadline(), kSecond) << "every minute at 59";
  set(1, 0x58, 0);
  EXPECT_EQ(rtc.deadline(), 60 * kSecond);
  set(1, 0xc0, 0);
  EXPECT_EQ(rtc.deadline(), kSecond) << "every second";
  set(1, 0x57, 0);
  set(3, 0x59, 0);
  set(5, 0x23, 0);
  EXPECT_EQ(rtc.deadline(), 86399 * kSecond) << "tomorrow";
  rtc.fire(rtc.deadline());
  EXPECT_TRUE(rtc.line());
  set(5, 0x24, 86399 * kSecond);
  get(0x0c, 86399 * kSecond);
  EXPECT_EQ(rtc.deadline(), kNever) << "an hour that never comes";
}

TEST_F(RtcTest, HoldsTheMemorySizeAndOtherBytes) {
  EXPECT_EQ(get(0x15, 0) | get(0x16, 0) << 8, 640);
  EXPECT_EQ(get(0x17, 0) | get(0x18, 0) << 8, 63 * 1024);
  EXPECT_EQ(get(0x34, 0) | get(0x35, 0) << 8, 48 * 16);
  set(0x0f, 0x0a, 0);
  EXPECT_EQ(get(0x8f, 0), 0x0a) << "the NMI bit is not part of the index";
}

}  // namespace
}  // namespace slalom::vm
