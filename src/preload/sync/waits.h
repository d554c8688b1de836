// Waiting on a word of memory, and waking who waits on an object: what a signal, a broadcast and a futex
// wake-up have in common.
#pragma once

#include <cstdint>

#include "trace/op.h"

namespace slalom::preload {

inline constexpr uint32_t kAnyBits = UINT32_MAX;

// A whole operation. If not all that wait are woken, which of them is a choice of the search. Gives the
// number that was woken. Only those that wait with one of the bits.
uint32_t wake_waiters(const void* object, uint32_t most, uint64_t pc, uint32_t bits = kAnyBits);
// The same as a part of an operation: it is the running agent's turn.
uint32_t wake_some(OpKind op, const void* object, uint32_t most, uint32_t bits = kAnyBits);
// As a futex: if the word still has the expected value, waits until somebody wakes it. 0, -EAGAIN (it has
// another), -ETIMEDOUT or, inside an Interruptible, -EINTR.
long wait_on_word(uint32_t* word, uint32_t expected, uint64_t deadline, uint64_t pc,
                  uint32_t bits = kAnyBits);
// As a futex: wakes some of those that wait on the word, and moves others to a second one. Gives how many
// both were, or, if there is an expected value and the word has another, -EAGAIN.
long move_waiters(const uint32_t* word, uint32_t most_woken, const uint32_t* second, uint32_t most_moved,
                  const uint32_t* expected, uint64_t pc);

}  // namespace slalom::preload
