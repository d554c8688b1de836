// Virtual time, which all devices use. It is a function of the executed instructions, never of the host's
// clock.
//
// Clocks of odd frequencies are numbered ticks since time 0, computed with integers. So there is no drift,
// and results do not depend on how a run is sliced.
#pragma once

#include <cstdint>

namespace slalom::vm {

using Time = uint64_t;  // nanoseconds since the machine was switched on

inline constexpr Time kNever = ~Time{0};
inline constexpr Time kSecond = 1'000'000'000;

constexpr Time later(Time time, Time by) {
  return by < kNever - time ? time + by : kNever;
}

struct Clock {
  uint64_t hertz;

  // tick_at: the number of the last tick at or before `time`. time_of: the first nanosecond at which `tick`
  // has happened.
  constexpr uint64_t tick_at(Time time) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(time) * hertz / kSecond);
  }
  constexpr Time time_of(uint64_t tick) const {
    const unsigned __int128 time = (static_cast<unsigned __int128>(tick) * kSecond + hertz - 1) / hertz;
    return time < kNever ? static_cast<Time>(time) : kNever;
  }
};

}  // namespace slalom::vm
