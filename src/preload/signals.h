// Signals that the program sends to itself, for those who send some: timers, kill.
#pragma once

#include <cstdint>

namespace slalom::preload {

bool handles(int signal);  // the program has a handler for it, that is controlled
// A whole operation: the signal is sent to the process. Which of the threads that do not block it takes it,
// is a choice of the search.
void signal_process(int signal, uint64_t pc);
// In the running agent: the handlers of what was sent to it.
void run_handlers();

}  // namespace slalom::preload
