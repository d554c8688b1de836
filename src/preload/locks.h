// The model's mutex, for those who take it inside another operation. State and owner live in the mutex's own
// memory, in glibc's fields, so that a mutex that was never initialised by a call (all zero) is a free one.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace slalom::preload {

void take_mutex(pthread_mutex_t* mutex);  // can be taken now: tells and retires a Lock
// Gives it up as part of a wait: tells an Unlock, retires nothing. Not held by the running agent: misuse.
void release_mutex_to_wait(pthread_mutex_t* mutex, uint64_t pc);
int lock_mutex(pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline);
int try_lock_mutex(pthread_mutex_t* mutex, uint64_t pc);
int unlock_mutex(pthread_mutex_t* mutex, uint64_t pc);

}  // namespace slalom::preload
