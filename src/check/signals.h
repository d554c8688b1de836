// Signals inside a slalom::check: each execution begins with the handlers and the mask that the process has,
// and what it changes is gone at its end. Not for signals of faults, which end an execution
// (check/failures.h), nor for those from outside, which are the process's.
#pragma once

namespace slalom::checking {

void adopt_signals();  // as the process has them now; before executions
void begin_signals();  // of an execution; its first agent is there

}  // namespace slalom::checking
