// Condition variables, semaphores, barriers, once, and system calls on futexes: where threads wait for what
// others do.
#include "preload/waits.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "preload/clocks.h"
#include "preload/locks.h"
#include "preload/raw.h"
#include "preload/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kDestroyed = 0xdeadc0deu;

// A condition variable needs no state: who waits is known. A destroyed one is marked in a field of glibc's.
void check_alive(const pthread_cond_t* condition, uint64_t pc, const char* what) {
  if (condition->__data.__g1_orig_size == kDestroyed) runtime().misuse(pc, what);
}

// All that wait on the object, in the order of their ids, so that a choice among them means the same in
// every execution.
uint32_t waiters(const void* object, uint32_t (&found)[kMostAgents]) {
  Runtime& rt = runtime();
  uint32_t count = 0;
  for (uint32_t i = 0; i < rt.agent_count(); ++i) {
    if (rt.ended(i) || rt.agent(i).need != Need::Wakeup || rt.agent(i).object != object) continue;
    uint32_t at = count++;
    for (; at > 0 && rt.slot(found[at - 1]).id > rt.slot(i).id; --at) found[at] = found[at - 1];
    found[at] = i;
  }
  return count;
}

int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline) {
  Runtime& rt = runtime();
  rt.cancel_point(false);
  rt.arrive(OpKind::Wait, object_id(condition), pc);
  check_alive(condition, pc, "wait on a condition variable that was destroyed");
  rt.tell(OpKind::Wait, object_id(condition));
  release_mutex_to_wait(mutex, pc);
  rt.retire();
  rt.me().relock = mutex;
  rt.me().at_cancel_point = true;
  const bool woken = rt.park(OpKind::Wait, condition, pc, deadline);
  rt.me().relock = nullptr;
  rt.me().at_cancel_point = false;
  if (!woken) {
    rt.tell(OpKind::TimerFire, object_id(condition), 1);
    rt.retire(true);
    rt.arrive(OpKind::Lock, object_id(mutex), pc, Need::Mutex, mutex);
  }
  take_mutex(mutex);
  rt.cancel_point(false);
  return woken ? 0 : ETIMEDOUT;
}

// At its turn: `most` of those who wait go on.
uint32_t wake_now(OpKind op, const void* object, uint32_t most) {
  Runtime& rt = runtime();
  uint32_t found[kMostAgents];
  uint32_t count = waiters(object, found);
  if (most == 1 && count > 1) {
    found[0] = found[rt.ask(count)];
    count = 1;
  }
  if (count > most) count = most;
  rt.tell(op, object_id(object), 0, count);
  for (uint32_t i = 0; i < count; ++i) rt.wake(found[i], object_id(object));
  rt.retire();
  return count;
}

int signal_one(pthread_cond_t* condition, uint64_t pc) {
  runtime().arrive(OpKind::Signal, object_id(condition), pc);
  check_alive(condition, pc, "signal of a condition variable that was destroyed");
  wake_now(OpKind::Signal, condition, 1);
  return 0;
}

int signal_all(pthread_cond_t* condition, uint64_t pc) {
  runtime().arrive(OpKind::Broadcast, object_id(condition), pc);
  check_alive(condition, pc, "broadcast of a condition variable that was destroyed");
  wake_now(OpKind::Broadcast, condition, UINT32_MAX);
  return 0;
}

uint32_t& count_of(sem_t* semaphore) {
  return *reinterpret_cast<uint32_t*>(semaphore);
}

int wait_for(sem_t* semaphore, uint64_t pc, uint64_t deadline) {
  Runtime& rt = runtime();
  rt.cancel_point(true);
  const Interruptible call(OnSignal::EndsOrRestarts);
  const bool in_time =
      rt.arrive(OpKind::SemWait, object_id(semaphore), pc, Need::Semaphore, semaphore, deadline);
  rt.cancel_point(false);
  if (call.ended()) return errno = EINTR, -1;
  if (!in_time) {
    rt.tell(OpKind::TryLock, object_id(semaphore), 0, 0);
    rt.retire(true);
    errno = ETIMEDOUT;
    return -1;
  }
  rt.tell(OpKind::SemWait, object_id(semaphore), count_of(semaphore));
  --count_of(semaphore);
  rt.retire();
  return 0;
}

// Ends a pthread_once whose function has thrown: the next caller tries again.
struct OnceInProgress {
  int* control;
  bool done = false;
  ~OnceInProgress() { *static_cast<volatile int*>(control) = done ? 2 : 0; }
};

bool was_done(const int* control) {
  return *static_cast<const volatile int*>(control) == 2;
}

int run_once(int* control, void (*function)(), uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Lock, object_id(control), pc, Need::Once, control);
  rt.tell(OpKind::Lock, object_id(control));
  const bool first = *static_cast<volatile int*>(control) == 0;
  if (first) *control = 1;
  rt.retire();
  if (first) {
    OnceInProgress once{control};
    function();
    once.done = true;
  }
  rt.arrive(OpKind::Unlock, object_id(control), pc);
  rt.tell(OpKind::Unlock, object_id(control), 1);
  rt.retire();
  return 0;
}

}  // namespace

uint32_t wake_waiters(const void* object, uint32_t most, uint64_t pc) {
  const OpKind op = most == 1 ? OpKind::Signal : OpKind::Broadcast;
  runtime().arrive(op, object_id(object), pc);
  return wake_now(op, object, most);
}

long wait_on_word(uint32_t* word, uint32_t expected, uint64_t deadline, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Wait, object_id(word), pc);
  const uint32_t value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  if (value != expected) {
    rt.tell_access(OpKind::AtomicLoad, word, 4, value, false);
    rt.retire();
    return -EAGAIN;
  }
  rt.tell(OpKind::Wait, object_id(word));
  rt.retire();
  const bool woken = rt.park(OpKind::Wait, word, pc, deadline);
  if (!woken && rt.me().on_signal != OnSignal::GoesOn && rt.me().interrupted) return -EINTR;
  if (woken)
    rt.tell(OpKind::GoOn, 0);
  else
    rt.tell(OpKind::TimerFire, object_id(word), 1);
  rt.retire(!woken);
  return woken ? 0 : -ETIMEDOUT;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_wait)(condition, mutex);
  return wait_on(condition, mutex, SLALOM_PLACE(), kNever);
}
// The clock of the limit is an attribute of the condition variable, kept by glibc in a bit of the second
// word.
SLALOM_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_timedwait)(condition, mutex, until);
  if (!valid(until)) return EINVAL;
  const bool monotonic = (condition->__data.__wrefs & 2) != 0;
  const uint64_t deadline = from_clock(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, *until);
  return wait_on(condition, mutex, SLALOM_PLACE(), deadline);
}
SLALOM_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
  if (!valid(until)) return EINVAL;
  return wait_on(condition, mutex, SLALOM_PLACE(), from_clock(clock, *until));
}
SLALOM_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_signal)(condition);
  return signal_one(condition, SLALOM_PLACE());
}
SLALOM_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_broadcast)(condition);
  return signal_all(condition, SLALOM_PLACE());
}
SLALOM_EXPORT int pthread_cond_init(pthread_cond_t* condition,
                                    const pthread_condattr_t* attributes) noexcept {
  const int result = SLALOM_REAL(pthread_cond_init)(condition, attributes);
  if (result == 0) condition->__data.__g1_orig_size = 0;
  return result;
}
SLALOM_EXPORT int pthread_cond_destroy(pthread_cond_t* condition) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_destroy)(condition);
  Runtime& rt = runtime();
  const uint64_t pc = SLALOM_PLACE();
  rt.arrive(OpKind::Broadcast, object_id(condition), pc);
  check_alive(condition, pc, "destruction of a condition variable that was destroyed");
  uint32_t found[kMostAgents];
  if (waiters(condition, found) > 0)
    rt.misuse(pc, "destruction of a condition variable on which a thread waits");
  rt.tell(OpKind::Broadcast, object_id(condition), 0, 1);
  rt.retire();
  condition->__data.__g1_orig_size = kDestroyed;
  return 0;
}

SLALOM_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  if (!runtime().controls()) return SLALOM_REAL(cnd_wait)(condition, mutex);
  wait_on(reinterpret_cast<pthread_cond_t*>(condition), reinterpret_cast<pthread_mutex_t*>(mutex),
          SLALOM_PLACE(), kNever);
  return thrd_success;
}
SLALOM_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(cnd_timedwait)(condition, mutex, until);
  if (!valid(until)) return thrd_error;
  const int result =
      wait_on(reinterpret_cast<pthread_cond_t*>(condition), reinterpret_cast<pthread_mutex_t*>(mutex),
              SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until));
  return result == 0 ? thrd_success : thrd_timedout;
}
SLALOM_EXPORT int cnd_signal(cnd_t* condition) {
  if (!runtime().controls()) return SLALOM_REAL(cnd_signal)(condition);
  signal_one(reinterpret_cast<pthread_cond_t*>(condition), SLALOM_PLACE());
  return thrd_success;
}
SLALOM_EXPORT int cnd_broadcast(cnd_t* condition) {
  if (!runtime().controls()) return SLALOM_REAL(cnd_broadcast)(condition);
  signal_all(reinterpret_cast<pthread_cond_t*>(condition), SLALOM_PLACE());
  return thrd_success;
}

SLALOM_EXPORT int sem_wait(sem_t* semaphore) {
  if (!runtime().controls()) return SLALOM_REAL(sem_wait)(semaphore);
  return wait_for(semaphore, SLALOM_PLACE(), kNever);
}
SLALOM_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(sem_timedwait)(semaphore, until);
  if (!valid(until)) return errno = EINVAL, -1;
  return wait_for(semaphore, SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until));
}
SLALOM_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(sem_clockwait)(semaphore, clock, until);
  if (!valid(until)) return errno = EINVAL, -1;
  return wait_for(semaphore, SLALOM_PLACE(), from_clock(clock, *until));
}
SLALOM_EXPORT int sem_trywait(sem_t* semaphore) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(sem_trywait)(semaphore);
  Runtime& rt = runtime();
  rt.arrive(OpKind::TryLock, object_id(semaphore), SLALOM_PLACE());
  const uint32_t count = count_of(semaphore);
  if (count == 0) {
    rt.tell(OpKind::TryLock, object_id(semaphore), 0, 0);
    rt.retire(true);
    errno = EAGAIN;
    return -1;
  }
  rt.tell(OpKind::SemWait, object_id(semaphore), count);
  --count_of(semaphore);
  rt.retire();
  return 0;
}
SLALOM_EXPORT int sem_post(sem_t* semaphore) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(sem_post)(semaphore);
  Runtime& rt = runtime();
  rt.arrive(OpKind::SemPost, object_id(semaphore), SLALOM_PLACE());
  rt.tell(OpKind::SemPost, object_id(semaphore), count_of(semaphore));
  ++count_of(semaphore);
  rt.retire();
  return 0;
}

// glibc's barrier: how many have come, the round, how many are needed.
SLALOM_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_barrier_wait)(barrier);
  Runtime& rt = runtime();
  const uint64_t pc = SLALOM_PLACE();
  auto* words = reinterpret_cast<uint32_t*>(barrier);
  uint32_t& come = words[0];
  const uint32_t needed = words[2];
  rt.arrive(OpKind::BarrierArrive, object_id(barrier), pc);
  rt.tell(OpKind::BarrierArrive, object_id(barrier));
  if (++come < needed) {
    rt.retire();
    rt.park(OpKind::BarrierArrive, barrier, pc, kNever);
    rt.tell(OpKind::GoOn, 0);
    rt.retire();
    return 0;
  }
  come = 0;
  uint32_t found[kMostAgents];
  const uint32_t count = waiters(barrier, found);
  for (uint32_t i = 0; i < count; ++i) rt.wake(found[i], object_id(barrier));
  rt.retire();
  return PTHREAD_BARRIER_SERIAL_THREAD;
}

SLALOM_EXPORT int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_barrier_destroy)(barrier);
  const uint64_t pc = SLALOM_PLACE();
  runtime().arrive(OpKind::BarrierArrive, object_id(barrier), pc);
  if (*reinterpret_cast<uint32_t*>(barrier) != 0)
    runtime().misuse(pc, "destruction of a barrier at which a thread waits");
  runtime().tell(OpKind::BarrierArrive, object_id(barrier));
  runtime().retire();
  return 0;
}

SLALOM_EXPORT int pthread_once(pthread_once_t* control, void (*function)()) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_once)(control, function);
  if (was_done(control)) return 0;
  return run_once(control, function, SLALOM_PLACE());
}
SLALOM_EXPORT void call_once(once_flag* flag, void (*function)()) {
  if (!runtime().controls()) return SLALOM_REAL(call_once)(flag, function);
  if (was_done(reinterpret_cast<int*>(flag))) return;
  run_once(reinterpret_cast<int*>(flag), function, SLALOM_PLACE());
}
