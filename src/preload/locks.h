// The model's locks: the mutex, for those who take it inside another operation, and what the state of both
// kinds is. State and owner live in the lock's own
// memory, in glibc's fields, so that one that was never initialised by a call (all zero) is a free one.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace slalom::preload {

// The lock without the ceiling of its priority, which glibc keeps in the same word (PTHREAD_PRIO_PROTECT).
inline constexpr int kLockBits = (1 << 19) - 1;
inline int lock_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__lock & kLockBits;
}
inline void set_lock(pthread_mutex_t* mutex, int lock) {
  mutex->__data.__lock = (mutex->__data.__lock & ~kLockBits) | lock;
}

// A reader-writer lock that prefers writers: they take a gate before it, through which readers have to come,
// before they wait for the readers that are in. A field of glibc's says who has it, plus one; 0: nobody.
inline bool has_gate(const pthread_rwlock_t* lock) {
  return lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}
inline uint32_t gate_holder(const pthread_rwlock_t* lock) {
  return lock->__data.__writers_futex;
}

void take_mutex(pthread_mutex_t* mutex);  // can be taken now: tells and retires a Lock
// Gives it up as part of a wait: tells an Unlock, retires nothing. Not held by the running agent: misuse.
void release_mutex_to_wait(pthread_mutex_t* mutex, uint64_t pc);
int lock_mutex(pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline);
int try_lock_mutex(pthread_mutex_t* mutex, uint64_t pc);
int unlock_mutex(pthread_mutex_t* mutex, uint64_t pc);

}  // namespace slalom::preload
