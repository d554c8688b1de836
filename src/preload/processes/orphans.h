// What executions leave running: a process that loses its parent becomes a child of the zygote, which ends
// it, whatever group or session it is in. Not for processes that the program starts before main().
#pragma once

namespace slalom::preload {

bool adopt_orphans();  // false: there are children already, which cannot be told from orphans
void end_orphans();    // all, until none is left

}  // namespace slalom::preload
