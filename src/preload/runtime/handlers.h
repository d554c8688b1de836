// Functions of signals/ that the runtime calls although signals/ lies above it: they run an agent's signal
// handlers at its turn. Defined in preload/signals/signals.cc.
#pragma once

namespace slalom::preload {

// Treats signals that came from outside since the last call as signals sent to the process.
void take_outside_signals();
// Runs the handlers of the signals that were sent to the running agent. Returns whether all of them have
// SA_RESTART.
bool run_handlers();

}  // namespace slalom::preload
