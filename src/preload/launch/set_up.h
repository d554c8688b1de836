// The descriptors of the process that has run the program's set-up. Each execution gets its own copies.
#pragma once

namespace slalom::preload {

// Notes the descriptors that are open at the entry of main(). All executions share these.
void note_first_descriptors();

}  // namespace slalom::preload
