// What breaks a test body, caught before it breaks the test: failed assertions, abort and std::terminate,
// fatal signals, exceptions that leave a thread, exit.
#pragma once

#include <cstdint>

namespace slalom::checking {

void watch_failures();  // between these two: signals and std::terminate
void unwatch_failures();

// In a handler, at the base of a fiber: an exception has left the thread.
[[noreturn]] void fail_for_exception();
void note_throw(uint64_t pc);  // where the last exception of the calling thread was thrown

}  // namespace slalom::checking
