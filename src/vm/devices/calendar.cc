#include "vm/devices/calendar.h"

namespace slalom::vm {

namespace {

constexpr int64_t kDay = 86400;
constexpr int64_t kDaysPerEra = 146097;      // 400 years
constexpr int64_t kDaysBefore1970 = 719468;  // since 1 March of year 0

int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

}  // namespace

// Years start in March, so that the leap day is the last day of a year. Month m of such a year (0 is March)
// starts at day (153 m + 2) / 5.
Date date_of(int64_t seconds) {
  const int64_t days = floor_divide(seconds, kDay);
  const auto rest = static_cast<unsigned>(seconds - days * kDay);
  const int64_t since = days + kDaysBefore1970;
  const int64_t era = floor_divide(since, kDaysPerEra);
  const int64_t day_of_era = since - era * kDaysPerEra;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / (kDaysPerEra - 1)) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t march_month = (5 * day_of_year + 2) / 153;
  Date date;
  date.month = static_cast<unsigned>(march_month < 10 ? march_month + 3 : march_month - 9);
  date.day = static_cast<unsigned>(day_of_year - (153 * march_month + 2) / 5 + 1);
  date.year = era * 400 + year_of_era + (date.month <= 2 ? 1 : 0);
  date.hour = rest / 3600;
  date.minute = rest / 60 % 60;
  date.second = rest % 60;
  date.weekday = static_cast<unsigned>((days % 7 + 7 + 4) % 7) + 1;  // 1 January 1970 was a Thursday
  return date;
}

int64_t unix_seconds(const Date& date) {
  const int64_t months = date.year * 12 + date.month - 1;
  const int64_t march_month = ((months % 12) + 12 + 10) % 12;
  const int64_t year = floor_divide(months, 12) - (march_month >= 10 ? 1 : 0);
  const int64_t era = floor_divide(year, 400);
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * march_month + 2) / 5 + date.day - 1;
  const int64_t days = era * kDaysPerEra + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
                       day_of_year - kDaysBefore1970;
  return days * kDay + date.hour * 3600 + date.minute * 60 + date.second;
}

}  // namespace slalom::vm
