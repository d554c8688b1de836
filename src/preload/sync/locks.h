// The model of mutexes, for operations that lock or unlock one as a part of themselves. The state lives in
// the mutex's own memory (preload/runtime/lock_words.h).
#pragma once

#include <pthread.h>

#include <cstdint>

#include "preload/runtime/lock_words.h"

namespace slalom::preload {

void take_mutex(pthread_mutex_t* mutex);  // the mutex must be available; reports and retires a Lock
// Releases the mutex as part of a wait: reports an Unlock, retires nothing. Reports a misuse if the running
// agent does not hold it.
void release_mutex_to_wait(pthread_mutex_t* mutex, uint64_t pc);
int lock_mutex(pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline);
int try_lock_mutex(pthread_mutex_t* mutex, uint64_t pc);
int unlock_mutex(pthread_mutex_t* mutex, uint64_t pc);

}  // namespace slalom::preload
