// Virtual time, as interposed functions give it to the target and take deadlines from it.
#pragma once

#include <time.h>

#include <cstdint>

namespace slalom::preload {

uint64_t from_clock(clockid_t clock, const timespec& time);  // the runtime's nanoseconds; the past: 0
timespec to_clock(clockid_t clock, uint64_t nanoseconds);
uint64_t after(const timespec& duration);  // that much later than now
bool valid(const timespec* time);
bool valid(clockid_t clock);

}  // namespace slalom::preload
