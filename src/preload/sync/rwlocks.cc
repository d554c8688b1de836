// Reader-writer locks. Readers may always share, and a waiting writer does not keep them out. Only in a lock
// that prefers writers the writer closes a gate (preload/runtime/lock_words.h), which is a lock of its own.
#include <errno.h>
#include <pthread.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/locks.h"

namespace slalom::preload {
namespace {

// Marks a destroyed lock, in a field of glibc's that the model does not use and that every initialisation
// sets.
constexpr uint32_t kDestroyed = 0xdeadc0deu;
void check_alive(const pthread_rwlock_t* lock, uint64_t pc, const char* what) {
  if (lock->__data.__wrphase_futex == kDestroyed) runtime().misuse(pc, what);
}

uint64_t state_of(const pthread_rwlock_t* lock) {
  return uint64_t{lock->__data.__readers} << 1 | (lock->__data.__writers != 0);
}

bool writes(const pthread_rwlock_t* lock) {
  return lock->__data.__writers != 0 &&
         static_cast<uint32_t>(lock->__data.__cur_writer) == runtime().self() + 1;
}

uint64_t gate_id(const pthread_rwlock_t* lock) {
  return object_id(lock) | kGateBit;
}
void close_gate(pthread_rwlock_t* lock) {
  runtime().tell(OpKind::WriteLock, gate_id(lock));
  lock->__data.__writers_futex = runtime().self() + 1;
}
void open_gate(pthread_rwlock_t* lock) {
  runtime().tell(OpKind::WriteUnlock, gate_id(lock), 1);
  lock->__data.__writers_futex = 0;
}
void pass_gate(const pthread_rwlock_t* lock) {
  runtime().tell(OpKind::ReadLock, gate_id(lock));
  runtime().tell(OpKind::ReadUnlock, gate_id(lock), 2);
}

void take(pthread_rwlock_t* lock, bool write) {
  runtime().tell(write ? OpKind::WriteLock : OpKind::ReadLock, object_id(lock), state_of(lock));
  if (write) {
    lock->__data.__writers = 1;
    lock->__data.__cur_writer = static_cast<int>(runtime().self() + 1);
  } else {
    ++lock->__data.__readers;
    runtime().hold_read(lock);
  }
  runtime().retire();
}

int lock_for(pthread_rwlock_t* lock, bool write, uint64_t pc, uint64_t deadline) {
  Runtime& rt = runtime();
  const OpKind op = unless_limited(write ? OpKind::WriteLock : OpKind::ReadLock, deadline);
  const bool gated = has_gate(lock);
  bool in_time = rt.arrive(op, gated ? gate_id(lock) : object_id(lock), pc,
                           write && !gated ? Need::WriteLock : Need::ReadLock, lock, deadline);
  check_alive(lock, pc, "lock of a reader-writer lock that was destroyed");
  if (!in_time) {
    if (gated)
      rt.tell(OpKind::TryLock, gate_id(lock), 1, 0);
    else
      rt.tell(OpKind::TryLock, object_id(lock), state_of(lock), 0);
    rt.retire(true);
    return ETIMEDOUT;
  }
  if (writes(lock)) {
    rt.tell(OpKind::TryLock, object_id(lock), state_of(lock), 0);
    rt.retire();
    return EDEADLK;
  }
  if (gated && !write) pass_gate(lock);
  if (gated && write) {
    close_gate(lock);
    rt.retire();
    in_time = rt.arrive(op, object_id(lock), pc, Need::WriteLock, lock, deadline);
    if (!in_time) {
      rt.tell(OpKind::TryLock, object_id(lock), state_of(lock), 0);
      open_gate(lock);
      rt.retire(true);
      return ETIMEDOUT;
    }
  }
  take(lock, write);
  return 0;
}

int try_lock_for(pthread_rwlock_t* lock, bool write, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::TryLock, object_id(lock), pc);
  check_alive(lock, pc, "trylock of a reader-writer lock that was destroyed");
  const uint64_t state = state_of(lock);
  const bool gated = has_gate(lock);
  const bool closed = gated && gate_holder(lock) != 0;
  if (!closed && (write ? state == 0 : (state & 1) == 0)) {
    if (gated && write) close_gate(lock);
    if (gated && !write) pass_gate(lock);
    take(lock, write);
    return 0;
  }
  if (gated) rt.tell(OpKind::TryLock, gate_id(lock), closed, 0);
  rt.tell(OpKind::TryLock, object_id(lock), state, 0);
  rt.retire(true);
  return EBUSY;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_rdlock)(lock);
  return lock_for(lock, false, SLALOM_PLACE(), kNever);
}
SLALOM_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_wrlock)(lock);
  return lock_for(lock, true, SLALOM_PLACE(), kNever);
}
SLALOM_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_tryrdlock)(lock);
  return try_lock_for(lock, false, SLALOM_PLACE());
}
SLALOM_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_trywrlock)(lock);
  return try_lock_for(lock, true, SLALOM_PLACE());
}
SLALOM_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_timedrdlock)(lock, until);
  if (!valid(until)) return EINVAL;
  return lock_for(lock, false, SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until));
}
SLALOM_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_timedwrlock)(lock, until);
  if (!valid(until)) return EINVAL;
  return lock_for(lock, true, SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until));
}
SLALOM_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                             const timespec* until) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_clockrdlock)(lock, clock, until);
  if (!valid(until)) return EINVAL;
  return lock_for(lock, false, SLALOM_PLACE(), from_clock(clock, *until));
}
SLALOM_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                             const timespec* until) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_clockwrlock)(lock, clock, until);
  if (!valid(until)) return EINVAL;
  return lock_for(lock, true, SLALOM_PLACE(), from_clock(clock, *until));
}

SLALOM_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_unlock)(lock);
  Runtime& rt = runtime();
  const uint64_t pc = SLALOM_PLACE();
  const OpKind op = writes(lock) ? OpKind::WriteUnlock : OpKind::ReadUnlock;
  rt.arrive(op, object_id(lock), pc);
  check_alive(lock, pc, "unlock of a reader-writer lock that was destroyed");
  const uint64_t state = state_of(lock);
  if (op == OpKind::WriteUnlock) {
    lock->__data.__writers = 0;
    lock->__data.__cur_writer = 0;
  } else {
    if (!rt.drop_read(lock)) rt.misuse(pc, "unlock of a reader-writer lock that the thread does not hold");
    --lock->__data.__readers;
  }
  rt.tell(op, object_id(lock), state);
  if (op == OpKind::WriteUnlock && has_gate(lock)) open_gate(lock);
  rt.retire();
  return 0;
}

SLALOM_EXPORT int pthread_rwlock_destroy(pthread_rwlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_rwlock_destroy)(lock);
  const uint64_t pc = SLALOM_PLACE();
  runtime().arrive(OpKind::WriteUnlock, object_id(lock), pc);
  check_alive(lock, pc, "destruction of a reader-writer lock that was destroyed");
  if (state_of(lock) != 0 || gate_holder(lock) != 0)
    runtime().misuse(pc, "destruction of a reader-writer lock that is locked");
  runtime().tell(OpKind::WriteUnlock, object_id(lock), 0, kDestroys);
  runtime().retire();
  lock->__data.__wrphase_futex = kDestroyed;
  return 0;
}
