// Waiting on a word of memory, and waking who waits on an object: what a signal, a broadcast and a futex
// wake-up have in common.
#pragma once

#include <cstdint>

namespace slalom::preload {

// A whole operation. With `most` 1 and several that wait, which of them is a choice of the search. Gives the
// number that was woken.
uint32_t wake_waiters(const void* object, uint32_t most, uint64_t pc);
// As a futex: if the word still has the expected value, waits until somebody wakes it. 0, -EAGAIN (it has
// another), -ETIMEDOUT or, inside an Interruptible, -EINTR.
long wait_on_word(uint32_t* word, uint32_t expected, uint64_t deadline, uint64_t pc);

}  // namespace slalom::preload
