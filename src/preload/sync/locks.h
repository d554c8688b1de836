// The mutex of the model, for operations that take or release it as a part of themselves. Its state lives in
// the lock's own memory: preload/runtime/lock_words.h.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "preload/runtime/lock_words.h"

namespace slalom::preload {

void take_mutex(pthread_mutex_t* mutex);  // can be taken now: tells and retires a Lock
// Gives it up as part of a wait: tells an Unlock, retires nothing. Not held by the running agent: misuse.
void release_mutex_to_wait(pthread_mutex_t* mutex, uint64_t pc);
int lock_mutex(pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline);
int try_lock_mutex(pthread_mutex_t* mutex, uint64_t pc);
int unlock_mutex(pthread_mutex_t* mutex, uint64_t pc);

}  // namespace slalom::preload
