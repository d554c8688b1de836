// Rtc: the MC146818 real-time clock and its 128 bytes of CMOS memory (ports 70 and 71), interrupt line 8.
//
// Starts at a given date and advances with virtual time. The update-in-progress bit is set for the last 244
// microseconds of each second. Time registers only change when a second ends. The weekday follows from the
// date. The memory also holds what firmware stores for old kernels: the size of RAM.
#pragma once

#include <array>
#include <cstdint>

#include "vm/devices/calendar.h"
#include "vm/devices/virtual_time.h"

namespace slalom::vm {

class Rtc {
 public:
  struct State {
    uint8_t index = 0;
    // Contains the time only while the clock is stopped. Register C contains the latched flags.
    std::array<uint8_t, 128> bytes{};
    int64_t base_seconds = 0;  // Unix time at base_time, with base_fraction nanoseconds
    Time base_time = 0;
    uint32_t base_fraction = 0;
    Time seen = 0;  // register C contains all periods, seconds and alarms up to this time
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.index, s.bytes, s.base_seconds, s.base_time, s.base_fraction, s.seen);
    }
  };

  Rtc(uint64_t start_unix_seconds, uint64_t memory_size);
  const State& state() const { return state_; }
  static bool valid(const State& state);
  void set_state(const State& state);

  bool read(Time now, uint16_t port, uint8_t& value);
  bool write(Time now, uint16_t port, uint8_t value);
  bool line() const;  // interrupt line 8

  Time deadline() const { return deadline_; }
  void fire(Time now);

 private:
  bool stopped() const;
  uint64_t since_base(Time now) const { return now - state_.base_time + state_.base_fraction; }
  Date date(Time now) const;
  uint8_t encode(unsigned value) const;
  unsigned decode(uint8_t value) const;
  uint8_t encode_hour(unsigned hour) const;
  unsigned decode_hour(uint8_t value) const;
  uint8_t time_register(const Date& date, unsigned index) const;
  void store_date(const Date& date);
  Date stored_date() const;
  bool is_time_register(unsigned index) const;
  void write_register(Time now, uint8_t value);

  Time next_period(Time after) const;
  Time next_second(Time after) const;
  Time next_alarm(Time after) const;
  void latch(Time now);  // sets the flags of register C for everything up to now
  void plan();

  State state_;
  Time deadline_ = kNever;
};

}  // namespace slalom::vm
