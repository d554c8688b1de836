// Waits on a word of memory, and wake-ups of the agents that wait on an object: the common part of signals,
// broadcasts and futex wake-ups.
#pragma once

#include <cstdint>

#include "trace/op.h"

namespace slalom::preload {

inline constexpr uint32_t kAnyBits = UINT32_MAX;

// Wakes at most `most` agents that wait on the object with one of the bits, as a whole operation. If more
// wait, the search chooses. Returns the number of woken agents.
uint32_t wake_waiters(const void* object, uint32_t most, uint64_t pc, uint32_t bits = kAnyBits);
// As wake_waiters(), but part of an operation of the running agent, which has its turn.
uint32_t wake_some(OpKind op, const void* object, uint32_t most, uint32_t bits = kAnyBits);
// As FUTEX_WAIT: if the word still has the expected value, waits for a wake-up. Returns 0, -EAGAIN if the
// word has another value, -ETIMEDOUT or, inside an Interruptible, -EINTR.
long wait_on_word(uint32_t* word, uint32_t expected, uint64_t deadline, uint64_t pc,
                  uint32_t bits = kAnyBits);
// As FUTEX_CMP_REQUEUE: wakes some of the agents that wait on the word, and moves others to a second word.
// Returns the number of both, or -EAGAIN if there is an expected value and the word has another.
long move_waiters(const uint32_t* word, uint32_t most_woken, const uint32_t* second, uint32_t most_moved,
                  const uint32_t* expected, uint64_t pc);

}  // namespace slalom::preload
