#pragma once

namespace slalom::preload {

// Call before the program's own code runs.
void fix_tcache_key();

}  // namespace slalom::preload
