// Processes that executions leave running. A process that loses its parent becomes a child of the zygote,
// which kills it, whatever its group or session. Not for processes that the program starts before main().
#pragma once

namespace slalom::preload {

bool adopt_orphans();  // returns false if there are children already, which look like orphans
void end_orphans();    // kills and reaps all children until none is left

}  // namespace slalom::preload
