// Failures of a test body, caught before they break the test: failed assertions, abort and std::terminate,
// fatal signals, exceptions that leave a thread, exit.
#pragma once

#include <cstdint>

namespace slalom::checking {

void watch_failures();  // signals and std::terminate are caught between these two calls
void unwatch_failures();

// Call in a catch handler at the base of a fiber: an exception has left the thread.
[[noreturn]] void fail_for_exception();
// Notes where the calling thread has thrown its last exception.
void note_throw(uint64_t pc);

}  // namespace slalom::checking
