// Dates of the proleptic Gregorian calendar, for the real-time clock: no host library, no time zones.
#pragma once

#include <cstdint>

namespace slalom::vm {

struct Date {
  int64_t year = 1970;
  unsigned month = 1;  // 1 to 12
  unsigned day = 1;
  unsigned hour = 0;
  unsigned minute = 0;
  unsigned second = 0;
  unsigned weekday = 5;  // 1 is Sunday; unix_seconds() ignores it
  bool operator==(const Date&) const = default;
};

Date date_of(int64_t unix_seconds);
int64_t unix_seconds(const Date& date);  // fields out of range carry over

}  // namespace slalom::vm
