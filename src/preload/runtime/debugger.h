// Empty functions that the runtime calls when a debugger should stop. `slalom replay --gdb` sets breakpoints
// on their names.
#pragma once

#include <cstdint>

extern "C" {
// Called where the bug shows.
void slalom_failed(const char* what);
// Called in the thread that goes on; agent `from` has stopped.
void slalom_switched(uint32_t from, uint32_t to);
}
