// Patience: notices an execution in which, for so many seconds, no thread comes to an operation that slalom
// sees: it waits in the kernel for something that is not controlled (a pipe, a socket), or computes for ever.
// A clock of the system asks once a second, by a signal to the thread that makes the executions.
#pragma once

#include <cstdint>
#include <string>

#include "check/modules.h"

namespace slalom::checking {

void begin_patience(uint32_t seconds);
void end_patience();
void note_execution();  // one begins

// The patience is over: an execution was ended, and no other one should be made. In words; empty: it is not.
std::string out_of_patience(const Modules& modules);

}  // namespace slalom::checking
