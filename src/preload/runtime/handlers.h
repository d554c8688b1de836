// What the runtime itself asks of signals/, which lies above it: to let an agent's signal handlers run where
// it has been given its turn. Defined in preload/signals/signals.cc.
#pragma once

namespace slalom::preload {

// From here on, signals that came from outside since the last call are as those that were sent to the
// process.
void take_outside_signals();
// Runs, in the running agent, the handlers of the signals that were sent to it. Returns whether all of them
// have SA_RESTART.
bool run_handlers();

}  // namespace slalom::preload
