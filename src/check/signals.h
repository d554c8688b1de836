// Signals inside a slalom::check. Each execution begins with the handlers and the mask of the process, and
// its changes are undone at its end. Not for fault signals, which end an execution (check/failures.h), nor
// for signals from outside, which the process receives.
#pragma once

namespace slalom::checking {

void adopt_signals();  // copies the process's handlers and mask; call before executions
void begin_signals();  // call at the start of an execution, when its first agent exists

}  // namespace slalom::checking
