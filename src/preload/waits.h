// Waking who waits on an object: what a signal, a broadcast and a futex wake-up have in common.
#pragma once

#include <cstdint>

namespace slalom::preload {

// A whole operation. With `most` 1 and several that wait, which of them is a choice of the search. Gives the
// number that was woken.
uint32_t wake_waiters(const void* object, uint32_t most, uint64_t pc);

}  // namespace slalom::preload
