// What the process that has run the program's set-up knows of descriptors, so that each execution has its
// own.
#pragma once

namespace slalom::preload {

// Call at the entry of main(): descriptors that are open then are shared by all executions in any case.
void note_first_descriptors();

}  // namespace slalom::preload
