// The state of a lock, in glibc's own fields. An all-zero lock is free, even if no call initialised it. The
// runtime reads it to find the agents that can run. preload/sync/ has the operations on locks.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace slalom::preload {

// The lock word without the priority ceiling, which glibc keeps in the same word (PTHREAD_PRIO_PROTECT).
inline constexpr int kLockBits = (1 << 19) - 1;
inline int lock_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__lock & kLockBits;
}
inline void set_lock(pthread_mutex_t* mutex, int lock) {
  mutex->__data.__lock = (mutex->__data.__lock & ~kLockBits) | lock;
}

// In a reader-writer lock that prefers writers, a writer takes a gate before it waits for the readers inside,
// and readers have to pass that gate.
inline bool has_gate(const pthread_rwlock_t* lock) {
  return lock->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
}
// The agent that holds the gate, plus one; 0 if none does.
inline uint32_t gate_holder(const pthread_rwlock_t* lock) {
  return lock->__data.__writers_futex;
}

}  // namespace slalom::preload
