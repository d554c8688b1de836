// Where a debugger stops: functions that do nothing, called when there is something to see. Their names are
// what `slalom replay --gdb` sets breakpoints on.
#pragma once

#include <cstdint>

extern "C" {
void slalom_failed(const char* what);              // the bug shows here
void slalom_switched(uint32_t from, uint32_t to);  // in the thread that goes on; `from` stands where it was
}
