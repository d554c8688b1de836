// Mutexes of all types and spin locks.
#include <errno.h>
#include <limits.h>
#include <threads.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/locks.h"

namespace slalom::preload {
namespace {

constexpr int kDestroyed = -1;  // glibc's value
// States of a robust mutex. kInconsistent: its owner has ended, and the next one has not called
// pthread_mutex_consistent() yet. kNotRecoverable: the next owner unlocked it without that call.
constexpr int kInconsistent = 2;          // lock word, in place of 1
constexpr int kNotRecoverable = INT_MAX;  // owner field

int type_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__kind & 3;
}
uint32_t mark(uint32_t agent) {
  return agent + 1;
}
bool mine(const pthread_mutex_t* mutex) {
  return lock_of(mutex) != 0 && static_cast<uint32_t>(mutex->__data.__owner) == mark(runtime().self());
}
void check_alive(const pthread_mutex_t* mutex, uint64_t pc, const char* what) {
  if (mutex->__data.__kind == kDestroyed) runtime().misuse(pc, what);
}

void hold(pthread_mutex_t* mutex, int lock = 1) {
  set_lock(mutex, lock);
  mutex->__data.__count = 1;
  mutex->__data.__owner = static_cast<int>(mark(runtime().self()));
}

// Wakes processes that share the mutex and really wait for it.
void wake_other_processes(pthread_mutex_t* mutex) {
  constexpr int kShared = 128;  // glibc's value
  if (runtime().has_children() && (mutex->__data.__kind & kShared) != 0)
    raw_syscall(SYS_futex, reinterpret_cast<long>(&mutex->__data.__lock), FUTEX_WAKE, 1);
}

// Reports an operation that neither takes nor releases the mutex. `why` is for people.
void tell_not_taken(pthread_mutex_t* mutex, const char* why) {
  runtime().tell(OpKind::TryLock, object_id(mutex), 1, 0, kNoAgent, why);
}
constexpr const char* kHeldAlready = "held already";

}  // namespace

void take_mutex(pthread_mutex_t* mutex) {
  if (mine(mutex)) {
    ++mutex->__data.__count;
    tell_not_taken(mutex, kHeldAlready);
  } else {
    runtime().tell(OpKind::Lock, object_id(mutex));
    hold(mutex);
  }
  runtime().retire();
}

void release_mutex_to_wait(pthread_mutex_t* mutex, uint64_t pc) {
  if (!mine(mutex)) runtime().misuse(pc, "wait on a condition variable without holding the mutex");
  // A recursive mutex that is held twice remains held, as in glibc: a wait undoes only one lock.
  if (--mutex->__data.__count > 0) return;
  runtime().tell(OpKind::Unlock, object_id(mutex), 1);
  mutex->__data.__owner = 0;
  set_lock(mutex, 0);
  wake_other_processes(mutex);
}

namespace {

// Handles a robust mutex that is taken over from an ended owner or is not recoverable. Returns an errno
// value, or 0 if neither is true.
int owner_trouble(pthread_mutex_t* mutex) {
  Runtime& rt = runtime();
  const bool lost = mutex->__data.__owner == kNotRecoverable;
  if (!lost && !rt.is_abandoned(mutex)) return 0;
  if (lost)
    tell_not_taken(mutex, "not recoverable");
  else
    rt.tell(OpKind::Lock, object_id(mutex));
  if (!lost) {  // everything that the owner did comes before
    const auto owner = static_cast<uint32_t>(mutex->__data.__owner) - 1;
    rt.tell(OpKind::Join, agent_object(rt.slot(owner)), 1, 0, owner);
    hold(mutex, kInconsistent);
  }
  rt.retire();
  return lost ? ENOTRECOVERABLE : EOWNERDEAD;
}

}  // namespace

int lock_mutex(pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline) {
  Runtime& rt = runtime();
  const bool in_time =
      rt.arrive(unless_limited(OpKind::Lock, deadline), object_id(mutex), pc, Need::Mutex, mutex, deadline);
  check_alive(mutex, pc, "lock of a mutex that was destroyed");
  if (!in_time) {
    tell_not_taken(mutex, "time is over");
    rt.retire(true);
    return ETIMEDOUT;
  }
  if (const int trouble = owner_trouble(mutex); trouble != 0) return trouble;
  if (mine(mutex)) {
    const bool recursive = type_of(mutex) == PTHREAD_MUTEX_RECURSIVE;
    if (recursive) ++mutex->__data.__count;
    tell_not_taken(mutex, kHeldAlready);
    rt.retire();
    return recursive ? 0 : EDEADLK;
  }
  take_mutex(mutex);
  return 0;
}

int try_lock_mutex(pthread_mutex_t* mutex, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::TryLock, object_id(mutex), pc);
  check_alive(mutex, pc, "trylock of a mutex that was destroyed");
  if (const int trouble = owner_trouble(mutex); trouble != 0) return trouble;
  const bool free = lock_of(mutex) == 0;
  const bool again = !free && mine(mutex) && type_of(mutex) == PTHREAD_MUTEX_RECURSIVE;
  if (again)
    tell_not_taken(mutex, kHeldAlready);
  else
    rt.tell(OpKind::TryLock, object_id(mutex), free ? 0 : 1, free ? 1 : 0);
  if (free) hold(mutex);
  if (again) ++mutex->__data.__count;
  rt.retire(!free && !again);  // a thread that fails will try again
  return free || again ? 0 : EBUSY;
}

int unlock_mutex(pthread_mutex_t* mutex, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Unlock, object_id(mutex), pc);
  check_alive(mutex, pc, "unlock of a mutex that was destroyed");
  if (!mine(mutex)) {
    const int type = type_of(mutex);
    if (type != PTHREAD_MUTEX_RECURSIVE && type != PTHREAD_MUTEX_ERRORCHECK)
      rt.misuse(pc, lock_of(mutex) == 0 ? "unlock of a mutex that is not locked"
                                        : "unlock of a mutex that another thread holds");
    tell_not_taken(mutex, "not held");
    rt.retire();
    return EPERM;
  }
  if (--mutex->__data.__count > 0) {
    tell_not_taken(mutex, "still held");
  } else {
    rt.tell(OpKind::Unlock, object_id(mutex), 1);
    mutex->__data.__owner = lock_of(mutex) == kInconsistent ? kNotRecoverable : 0;
    set_lock(mutex, 0);
    wake_other_processes(mutex);
  }
  rt.retire();
  return 0;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_lock)(mutex);
  return lock_mutex(mutex, SLALOM_PLACE(), kNever);
}

SLALOM_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_trylock)(mutex);
  return try_lock_mutex(mutex, SLALOM_PLACE());
}

SLALOM_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_timedlock)(mutex, until);
  if (!valid(until)) return EINVAL;
  return lock_mutex(mutex, SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until));
}

SLALOM_EXPORT int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                          const timespec* until) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_clocklock)(mutex, clock, until);
  if (!valid(until)) return EINVAL;
  return lock_mutex(mutex, SLALOM_PLACE(), from_clock(clock, *until));
}

SLALOM_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_unlock)(mutex);
  return unlock_mutex(mutex, SLALOM_PLACE());
}

SLALOM_EXPORT int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_destroy)(mutex);
  const uint64_t pc = SLALOM_PLACE();
  runtime().arrive(OpKind::Unlock, object_id(mutex), pc);
  check_alive(mutex, pc, "destruction of a mutex that was destroyed");
  if (lock_of(mutex) != 0) runtime().misuse(pc, "destruction of a mutex that is locked");
  runtime().tell(OpKind::Unlock, object_id(mutex), 0, kDestroys);
  runtime().retire();
  mutex->__data.__kind = kDestroyed;
  return 0;
}

SLALOM_EXPORT int pthread_mutex_consistent(pthread_mutex_t* mutex) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_mutex_consistent)(mutex);
  if (!mine(mutex) || lock_of(mutex) != kInconsistent) return EINVAL;
  set_lock(mutex, 1);
  return 0;
}

// A free spin lock is 1, as on x86 in glibc.
SLALOM_EXPORT int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_spin_lock)(lock);
  runtime().arrive(OpKind::Lock, object_id(const_cast<int*>(lock)), SLALOM_PLACE(), Need::Spin,
                   const_cast<int*>(lock));
  runtime().tell(OpKind::Lock, object_id(const_cast<int*>(lock)));
  *lock = 0;
  runtime().retire();
  return 0;
}

SLALOM_EXPORT int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_spin_trylock)(lock);
  runtime().arrive(OpKind::TryLock, object_id(const_cast<int*>(lock)), SLALOM_PLACE());
  const bool free = *lock == 1;
  runtime().tell(OpKind::TryLock, object_id(const_cast<int*>(lock)), !free, free);
  if (free) *lock = 0;
  runtime().retire(!free);
  return free ? 0 : EBUSY;
}

SLALOM_EXPORT int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_spin_unlock)(lock);
  const uint64_t pc = SLALOM_PLACE();
  runtime().arrive(OpKind::Unlock, object_id(const_cast<int*>(lock)), pc);
  if (*lock == 1) runtime().misuse(pc, "unlock of a spin lock that is not locked");
  runtime().tell(OpKind::Unlock, object_id(const_cast<int*>(lock)), 1);
  *lock = 1;
  runtime().retire();
  return 0;
}

// C11: the same objects, other function names and results.
namespace {

pthread_mutex_t* plain(mtx_t* mutex) {
  return reinterpret_cast<pthread_mutex_t*>(mutex);
}
int c11(int code) {
  return code == 0           ? thrd_success
         : code == EBUSY     ? thrd_busy
         : code == ETIMEDOUT ? thrd_timedout
                             : thrd_error;
}

}  // namespace

SLALOM_EXPORT int mtx_lock(mtx_t* mutex) {
  if (!runtime().controls()) return SLALOM_REAL(mtx_lock)(mutex);
  return c11(lock_mutex(plain(mutex), SLALOM_PLACE(), kNever));
}
SLALOM_EXPORT int mtx_trylock(mtx_t* mutex) {
  if (!runtime().controls()) return SLALOM_REAL(mtx_trylock)(mutex);
  return c11(try_lock_mutex(plain(mutex), SLALOM_PLACE()));
}
SLALOM_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(mtx_timedlock)(mutex, until);
  if (!valid(until)) return thrd_error;
  return c11(lock_mutex(plain(mutex), SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until)));
}
SLALOM_EXPORT int mtx_unlock(mtx_t* mutex) {
  if (!runtime().controls()) return SLALOM_REAL(mtx_unlock)(mutex);
  return c11(unlock_mutex(plain(mutex), SLALOM_PLACE()));
}
