// Conversions between virtual time and the clocks that interposed functions show to the target.
#pragma once

#include <time.h>

#include <cstdint>

namespace slalom::preload {

// Returns a time in the runtime's nanoseconds; 0 for times in the past.
uint64_t from_clock(clockid_t clock, const timespec& time);
timespec to_clock(clockid_t clock, uint64_t nanoseconds);
uint64_t after(const timespec& duration);  // the virtual time `duration` from now
bool valid(const timespec* time);
bool valid(clockid_t clock);

}  // namespace slalom::preload
