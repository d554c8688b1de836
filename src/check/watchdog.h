// The watchdog of a check: notices an execution in which no thread reaches an operation that slalom sees for
// a number of seconds. Such a thread waits in the kernel for something that is not controlled (a pipe, a
// socket), or computes for ever. A system timer checks once a second, by a signal to the thread that makes
// the executions.
#pragma once

#include <cstdint>
#include <string>

#include "check/modules.h"

namespace slalom::checking {

void start_watchdog(uint32_t seconds);
void stop_watchdog();
void note_execution();  // call when an execution begins

// Describes the execution that the watchdog has ended, after which the check must not start another one;
// empty if it has ended none.
std::string watchdog_report(const Modules& modules);

}  // namespace slalom::checking
