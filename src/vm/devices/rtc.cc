#include "vm/devices/rtc.h"

#include <algorithm>

namespace slalom::vm {

namespace {

constexpr uint16_t kRtcIndex = 0x70, kRtcData = 0x71;
enum RtcRegister : unsigned {
  kSeconds = 0,
  kSecondsAlarm = 1,
  kMinutes = 2,
  kMinutesAlarm = 3,
  kHours = 4,
  kHoursAlarm = 5,
  kWeekday = 6,
  kDayOfMonth = 7,
  kMonth = 8,
  kYear = 9,
  kA = 10,
  kB = 11,
  kC = 12,
  kD = 13,
  kCentury = 0x32,
};
constexpr uint8_t kUpdating = 0x80;                                      // in A
constexpr uint8_t kSet = 0x80, kBinary = 0x04, kTwentyFourHours = 0x02;  // in B
constexpr uint8_t kPeriodic = 0x40, kAlarm = 0x20, kUpdate = 0x10;       // enabled in B, flagged in C
constexpr uint8_t kSources = kPeriodic | kAlarm | kUpdate;
constexpr uint8_t kInterrupt = 0x80;  // in C
constexpr Clock kCrystal{32768};
constexpr Time kUpdateLead = 244'000;
constexpr int64_t kLatestDate = int64_t{1} << 38;

bool divider_in_reset(uint8_t a) {
  return (a & 0x60) == 0x60;
}

}  // namespace

Rtc::Rtc(uint64_t start_unix_seconds, uint64_t memory_size) {
  state_.base_seconds = static_cast<int64_t>(std::min<uint64_t>(start_unix_seconds, kLatestDate));
  state_.bytes[kA] = 0x26;
  state_.bytes[kB] = kTwentyFourHours;
  state_.bytes[kD] = 0x80;  // the battery is good
  const auto store = [&](unsigned low, uint64_t value, uint64_t most) {
    value = std::min(value, most);
    state_.bytes[low] = static_cast<uint8_t>(value);
    state_.bytes[low + 1] = static_cast<uint8_t>(value >> 8);
  };
  constexpr uint64_t mebibyte = 1 << 20;
  const auto above = [&](uint64_t start) { return memory_size > start ? memory_size - start : 0; };
  store(0x15, 640, 640);
  store(0x17, above(mebibyte) / 1024, 0xffff);
  store(0x30, above(mebibyte) / 1024, 0xffff);
  store(0x34, std::min(above(16 * mebibyte), 3056 * mebibyte) / 65536, 0xffff);
}

bool Rtc::valid(const State& state) {
  return state.index < 128 && state.base_fraction < kSecond && state.base_seconds >= -kLatestDate &&
         state.base_seconds <= kLatestDate;
}

void Rtc::set_state(const State& state) {
  state_ = state;
  plan();
}

bool Rtc::stopped() const {
  return (state_.bytes[kB] & kSet) != 0 || divider_in_reset(state_.bytes[kA]);
}

bool Rtc::line() const {
  return (state_.bytes[kC] & kInterrupt) != 0;
}

Date Rtc::date(Time now) const {
  return date_of(state_.base_seconds + static_cast<int64_t>(since_base(now) / kSecond));
}

uint8_t Rtc::encode(unsigned value) const {
  if (state_.bytes[kB] & kBinary) return static_cast<uint8_t>(value);
  return static_cast<uint8_t>(value / 10 % 10 << 4 | value % 10);
}

unsigned Rtc::decode(uint8_t value) const {
  return (state_.bytes[kB] & kBinary) != 0 ? value : (value >> 4) * 10u + (value & 15);
}

uint8_t Rtc::encode_hour(unsigned hour) const {
  if (state_.bytes[kB] & kTwentyFourHours) return encode(hour);
  return static_cast<uint8_t>(encode(hour % 12 == 0 ? 12 : hour % 12) | (hour >= 12 ? 0x80 : 0));
}

unsigned Rtc::decode_hour(uint8_t value) const {
  if (state_.bytes[kB] & kTwentyFourHours) return decode(value);
  return decode(value & 0x7f) % 12 + ((value & 0x80) != 0 ? 12 : 0);
}

bool Rtc::is_time_register(unsigned index) const {
  return index == kCentury ||
         (index <= kYear && index != kSecondsAlarm && index != kMinutesAlarm && index != kHoursAlarm);
}

uint8_t Rtc::time_register(const Date& date, unsigned index) const {
  switch (index) {
    case kSeconds:
      return encode(date.second);
    case kMinutes:
      return encode(date.minute);
    case kHours:
      return encode_hour(date.hour);
    case kWeekday:
      return encode(date.weekday);
    case kDayOfMonth:
      return encode(date.day);
    case kMonth:
      return encode(date.month);
    case kYear:
      return encode(static_cast<unsigned>(date.year % 100));
    default:
      return encode(static_cast<unsigned>(date.year / 100 % 100));
  }
}

void Rtc::store_date(const Date& date) {
  for (unsigned index = 0; index < state_.bytes.size(); ++index)
    if (is_time_register(index)) state_.bytes[index] = time_register(date, index);
}

Date Rtc::stored_date() const {
  const auto& bytes = state_.bytes;
  Date date;
  date.year = decode(bytes[kCentury]) * 100 + decode(bytes[kYear]);
  date.month = decode(bytes[kMonth]);
  date.day = decode(bytes[kDayOfMonth]);
  date.hour = decode_hour(bytes[kHours]);
  date.minute = decode(bytes[kMinutes]);
  date.second = decode(bytes[kSeconds]);
  return date;
}

bool Rtc::read(Time now, uint16_t port, uint8_t& value) {
  if (port == kRtcIndex) return value = 0xff, true;  // write-only
  if (port != kRtcData) return false;
  const unsigned index = state_.index;
  value = state_.bytes[index];
  if (is_time_register(index) && !stopped()) value = time_register(date(now), index);
  if (index == kA && !stopped() && since_base(now) % kSecond >= kSecond - kUpdateLead) value |= kUpdating;
  if (index == kC) {
    latch(now);
    value = state_.bytes[kC];
    state_.bytes[kC] = 0;
    plan();
  }
  return true;
}

bool Rtc::write(Time now, uint16_t port, uint8_t value) {
  if (port == kRtcIndex) {
    state_.index = value & 0x7f;  // the highest bit masks NMIs, which this machine never sends
    return true;
  }
  if (port != kRtcData) return false;
  latch(now);
  write_register(now, value);
  latch(now);  // the write may have enabled a source that is already flagged
  plan();
  return true;
}

void Rtc::write_register(Time now, uint8_t value) {
  const unsigned index = state_.index;
  if (index == kC || index == kD) return;  // read-only
  const bool was_stopped = stopped();
  const bool was_reset = divider_in_reset(state_.bytes[kA]);
  if (!was_stopped) store_date(date(now));
  // A change of format converts the stored time. Only while the clock is stopped do registers keep their
  // bytes, as on the chip.
  const Date before = stored_date();
  state_.bytes[index] = index == kA ? value & 0x7f : value;
  if (index == kB && !was_stopped) store_date(before);
  if (was_stopped && stopped()) return;
  if (was_stopped || is_time_register(index)) {
    const uint64_t fraction = was_stopped ? 0 : since_base(now) % kSecond;
    state_.base_seconds = std::clamp(unix_seconds(stored_date()), -kLatestDate, kLatestDate);
    state_.base_time = now;
    // After a reset of the divider, the first second lasts half a second.
    state_.base_fraction = static_cast<uint32_t>(was_reset ? kSecond / 2 : fraction);
  }
}

Time Rtc::next_period(Time after) const {
  const unsigned rate = state_.bytes[kA] & 15;
  if (rate == 0 || divider_in_reset(state_.bytes[kA])) return kNever;
  const unsigned shift = rate <= 2 ? rate + 6 : rate - 1;  // the two fastest rates are aliases of slower ones
  return kCrystal.time_of(((kCrystal.tick_at(after) >> shift) + 1) << shift);
}

Time Rtc::next_second(Time after) const {
  if (stopped()) return kNever;
  return later(after, kSecond - since_base(after) % kSecond);
}

// Returns the first second after `after` that the alarm registers match. Two high bits set match any value.
Time Rtc::next_alarm(Time after) const {
  const auto any = [](uint8_t value) { return (value & 0xc0) == 0xc0; };
  const uint8_t second = state_.bytes[kSecondsAlarm], minute = state_.bytes[kMinutesAlarm],
                hour = state_.bytes[kHoursAlarm];
  const Time first = next_second(after);
  if (first == kNever) return kNever;
  const Date start = date(first);
  const unsigned begin = start.hour * 3600 + start.minute * 60 + start.second;
  if (!any(second) && decode(second) > 59) return kNever;
  for (unsigned passed = 0; passed <= 1440; ++passed) {
    const unsigned minute_of_day = (begin / 60 + passed) % 1440;
    if (!any(hour) && decode_hour(hour) != minute_of_day / 60) continue;
    if (!any(minute) && decode(minute) != minute_of_day % 60) continue;
    const unsigned least = passed == 0 ? begin % 60 : 0;
    const unsigned wanted = any(second) ? least : decode(second);
    if (wanted < least) continue;
    return later(first, (uint64_t{passed} * 60 + wanted - begin % 60) * kSecond);
  }
  return kNever;
}

void Rtc::latch(Time now) {
  uint8_t& flags = state_.bytes[kC];
  if (now > state_.seen) {
    if (next_period(state_.seen) <= now) flags |= kPeriodic;
    if (next_second(state_.seen) <= now) flags |= kUpdate;
    if (next_alarm(state_.seen) <= now) flags |= kAlarm;
    state_.seen = now;
  }
  if ((flags & state_.bytes[kB] & kSources) != 0) flags |= kInterrupt;
}

void Rtc::fire(Time now) {
  latch(now);
  plan();
}

// While the line is high, further flags change nothing until register C is read.
void Rtc::plan() {
  deadline_ = kNever;
  if (line()) return;
  const uint8_t enabled = state_.bytes[kB];
  if (enabled & kPeriodic) deadline_ = std::min(deadline_, next_period(state_.seen));
  if (enabled & kUpdate) deadline_ = std::min(deadline_, next_second(state_.seen));
  if (enabled & kAlarm) deadline_ = std::min(deadline_, next_alarm(state_.seen));
}

}  // namespace slalom::vm
