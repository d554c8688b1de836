// Condition variables, semaphores, barriers, and waits and wake-ups of futexes.
#include "preload/sync/waits.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/sync/locks.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kDestroyed = 0xdeadc0deu;
constexpr uint32_t kCondition = 0;  // no futex bits: for condition variables

// The model of a condition variable needs no state, because the runtime knows the waiting agents. A field of
// glibc's marks a destroyed one.
void check_alive(const pthread_cond_t* condition, uint64_t pc, const char* what) {
  if (condition->__data.__g1_orig_size == kDestroyed) runtime().misuse(pc, what);
}

// Returns whether the condition variable is shared with processes that the program has started, which really
// wait. Does not touch it if there are none: it may no longer exist.
bool is_shared(const pthread_cond_t* condition) {
  return runtime().has_children() && (condition->__data.__wrefs & 1) != 0;
}

// Finds the agents that wait on the object, in the order of their ids, so that a choice among them means the
// same in every execution.
uint32_t waiters(const void* object, uint32_t (&found)[kMostAgents], uint32_t bits = 0) {
  Runtime& rt = runtime();
  uint32_t count = 0;
  for (uint32_t i = 0; i < rt.agent_count(); ++i) {
    if (rt.ended(i) || rt.agent(i).need != Need::Wakeup || rt.agent(i).object != object) continue;
    if (bits != 0 && (rt.agent(i).bits & bits) == 0) continue;
    uint32_t at = count++;
    for (; at > 0 && rt.slot(found[at - 1]).id > rt.slot(i).id; --at) found[at] = found[at - 1];
    found[at] = i;
  }
  return count;
}

int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t pc, uint64_t deadline) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Wait, object_id(condition), pc);
  rt.cancel_point(false);
  check_alive(condition, pc, "wait on a condition variable that was destroyed");
  rt.tell(OpKind::Wait, object_id(condition));
  release_mutex_to_wait(mutex, pc);
  rt.retire();
  rt.me().relock = mutex;
  rt.me().at_cancel_point = true;
  // A spurious wake-up is modelled as a time limit that may run out at any moment and that is not reported as
  // one.
  const bool spurious = deadline == kNever && rt.may_wake_alone();
  const bool woken = rt.park(OpKind::Wait, condition, pc, spurious ? rt.now() : deadline);
  rt.me().at_cancel_point = false;
  if (!woken) {
    // Cancellation may have ended the wait.
    if (rt.me().cancelled) rt.tell(OpKind::CpuUse, agent_object(rt.slot(rt.self())));
    rt.tell(OpKind::TimerFire, object_id(condition), 1);
    if (spurious) {
      ++rt.me().spurious;
      rt.tell(OpKind::Note, object_id(condition), 0, 0, kNoAgent, "a spurious wake-up");
    }
    rt.retire(!spurious);  // spurious wake-ups are limited, so fairness does not matter
    rt.arrive(OpKind::Lock, object_id(mutex), pc, Need::Mutex, mutex);
  }
  rt.me().relock = nullptr;
  take_mutex(mutex);
  rt.cancel_point(false);
  return woken || spurious ? 0 : ETIMEDOUT;
}

// The search chooses `most` of the `count` found agents. Moves these to the front and keeps the order in both
// parts. Returns the number of chosen agents.
uint32_t choose_some(uint32_t (&found)[kMostAgents], uint32_t count, uint32_t most) {
  if (count <= most) return count;
  uint32_t next = 0;
  for (uint32_t chosen = 0; chosen < most; ++chosen, ++next) {
    next += runtime().ask(count - next - (most - chosen) + 1);
    const uint32_t taken = found[next];
    for (uint32_t i = next; i > chosen; --i) found[i] = found[i - 1];
    found[chosen] = taken;
  }
  return most;
}

// Wakes and retires; the agent has its turn.
uint32_t wake_now(OpKind op, const void* object, uint32_t most) {
  const uint32_t count = wake_some(op, object, most, kCondition);
  runtime().retire();
  return count;
}

int signal_one(pthread_cond_t* condition, uint64_t pc) {
  runtime().arrive(OpKind::Signal, object_id(condition), pc);
  check_alive(condition, pc, "signal of a condition variable that was destroyed");
  wake_now(OpKind::Signal, condition, 1);
  if (is_shared(condition)) SLALOM_REAL(pthread_cond_signal)(condition);
  return 0;
}

int signal_all(pthread_cond_t* condition, uint64_t pc) {
  runtime().arrive(OpKind::Broadcast, object_id(condition), pc);
  check_alive(condition, pc, "broadcast of a condition variable that was destroyed");
  wake_now(OpKind::Broadcast, condition, UINT32_MAX);
  if (is_shared(condition)) SLALOM_REAL(pthread_cond_broadcast)(condition);
  return 0;
}

// glibc's semaphore has the words count, waiters, and sharing. Every initialisation sets the last, and the
// model does not need it, so it marks a destroyed semaphore.
uint32_t& count_of(sem_t* semaphore) {
  return *reinterpret_cast<uint32_t*>(semaphore);
}
uint32_t& life_of(sem_t* semaphore) {
  return reinterpret_cast<uint32_t*>(semaphore)[2];
}
void check_alive(sem_t* semaphore, uint64_t pc, const char* what) {
  if (life_of(semaphore) == kDestroyed) runtime().misuse(pc, what);
}

// glibc's barrier has the words arrived threads, round, and needed threads. The round marks a destroyed one.
void check_alive(const pthread_barrier_t* barrier, uint64_t pc, const char* what) {
  if (reinterpret_cast<const uint32_t*>(barrier)[1] == kDestroyed) runtime().misuse(pc, what);
}
int wait_for(sem_t* semaphore, uint64_t pc, uint64_t deadline) {
  Runtime& rt = runtime();
  rt.cancel_point(true);
  const Interruptible call(OnSignal::EndsOrRestarts);
  const bool in_time = rt.arrive(unless_limited(OpKind::SemWait, deadline), object_id(semaphore), pc,
                                 Need::Semaphore, semaphore, deadline);
  rt.cancel_point(false);
  check_alive(semaphore, pc, "wait on a semaphore that was destroyed");
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

}  // namespace

uint32_t wake_some(OpKind op, const void* object, uint32_t most, uint32_t bits) {
  Runtime& rt = runtime();
  uint32_t found[kMostAgents];
  const uint32_t count = choose_some(found, waiters(object, found, bits), most);
  rt.tell(op, object_id(object), bits == kCondition, count);
  for (uint32_t i = 0; i < count; ++i) rt.wake(found[i], object_id(object));
  return count;
}

uint32_t wake_waiters(const void* object, uint32_t most, uint64_t pc, uint32_t bits) {
  const OpKind op = most == 1 ? OpKind::Signal : OpKind::Broadcast;
  runtime().arrive(op, object_id(object), pc);
  const uint32_t count = wake_some(op, object, most, bits);
  runtime().retire();
  return count;
}

long wait_on_word(uint32_t* word, uint32_t expected, uint64_t deadline, uint64_t pc, uint32_t bits) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Wait, object_id(word), pc);
  const uint32_t value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  rt.tell_access(OpKind::AtomicLoad, word, 4, value, false);
  if (value != expected) {
    rt.retire();
    return -EAGAIN;
  }
  rt.tell(OpKind::Wait, object_id(word));
  rt.retire();
  rt.me().bits = bits;
  const bool woken = rt.park(OpKind::Wait, word, pc, deadline);
  if (!woken && rt.me().on_signal != OnSignal::GoesOn && rt.me().interrupted) return -EINTR;
  if (woken)
    rt.tell(OpKind::GoOn, 0);
  else
    rt.tell(OpKind::TimerFire, object_id(rt.me().object), 1);  // the wait may have been moved
  rt.retire(!woken);
  return woken ? 0 : -ETIMEDOUT;
}

long move_waiters(const uint32_t* word, uint32_t most_woken, const uint32_t* second, uint32_t most_moved,
                  const uint32_t* expected, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Broadcast, object_id(word), pc);
  const uint32_t value = __atomic_load_n(word, __ATOMIC_SEQ_CST);
  if (expected != nullptr) rt.tell_access(OpKind::AtomicLoad, word, 4, value, false);
  if (expected != nullptr && value != *expected) {
    rt.retire();
    return -EAGAIN;
  }
  uint32_t found[kMostAgents], rest[kMostAgents];
  const uint32_t count = waiters(word, found);
  const uint32_t woken = choose_some(found, count, most_woken);
  for (uint32_t i = woken; i < count; ++i) rest[i - woken] = found[i];
  const uint32_t moved = choose_some(rest, count - woken, most_moved);
  rt.tell(OpKind::Broadcast, object_id(word), 0, woken + moved);
  if (moved > 0 && second != word) rt.tell(OpKind::Broadcast, object_id(second), 0, moved);
  for (uint32_t i = 0; i < woken; ++i) rt.wake(found[i], object_id(word));
  for (uint32_t i = 0; i < moved; ++i) rt.move(rest[i], second);
  rt.retire();
  return woken + moved;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_wait)(condition, mutex);
  return wait_on(condition, mutex, SLALOM_PLACE(), kNever);
}
// The clock of the limit is an attribute of the condition variable, which glibc keeps in a bit of the second
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
  if (runtime().is_forked()) runtime().tell_shared_signal(condition, false);
  if (!runtime().controls()) return SLALOM_REAL(pthread_cond_signal)(condition);
  return signal_one(condition, SLALOM_PLACE());
}
SLALOM_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (runtime().is_forked()) runtime().tell_shared_signal(condition, true);
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
  rt.tell(OpKind::Broadcast, object_id(condition), 1, kDestroys);
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
  const uint64_t pc = SLALOM_PLACE();
  rt.arrive(OpKind::TryLock, object_id(semaphore), pc);
  check_alive(semaphore, pc, "wait on a semaphore that was destroyed");
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
  const uint64_t pc = SLALOM_PLACE();
  rt.arrive(OpKind::SemPost, object_id(semaphore), pc);
  check_alive(semaphore, pc, "post of a semaphore that was destroyed");
  const uint32_t count = count_of(semaphore);
  if (count == SEM_VALUE_MAX) {
    rt.tell(OpKind::TryLock, object_id(semaphore), count, 0);
    rt.retire();
    return errno = EOVERFLOW, -1;
  }
  rt.tell(OpKind::SemPost, object_id(semaphore), count);
  // A process that shares it really waits.
  const bool others = rt.has_children() && reinterpret_cast<const uint32_t*>(semaphore)[1] != 0;
  ++count_of(semaphore);
  if (others) raw_syscall(SYS_futex, reinterpret_cast<long>(semaphore), FUTEX_WAKE, 1);
  rt.retire();
  return 0;
}
SLALOM_EXPORT int sem_destroy(sem_t* semaphore) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(sem_destroy)(semaphore);
  Runtime& rt = runtime();
  const uint64_t pc = SLALOM_PLACE();
  rt.arrive(OpKind::SemPost, object_id(semaphore), pc);
  check_alive(semaphore, pc, "destruction of a semaphore that was destroyed");
  for (uint32_t i = 0; i < rt.agent_count(); ++i)
    if (!rt.ended(i) && rt.agent(i).need == Need::Semaphore && rt.agent(i).object == semaphore &&
        count_of(semaphore) == 0)
      rt.misuse(pc, "destruction of a semaphore on which a thread waits");
  rt.tell(OpKind::SemPost, object_id(semaphore), count_of(semaphore), kDestroys);
  rt.retire();
  life_of(semaphore) = kDestroyed;
  return 0;
}

SLALOM_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_barrier_wait)(barrier);
  Runtime& rt = runtime();
  const uint64_t pc = SLALOM_PLACE();
  auto* words = reinterpret_cast<uint32_t*>(barrier);
  uint32_t& come = words[0];
  const uint32_t needed = words[2];
  rt.arrive(OpKind::BarrierArrive, object_id(barrier), pc);
  check_alive(barrier, pc, "wait at a barrier that was destroyed");
  rt.tell(OpKind::BarrierArrive, object_id(barrier));
  if (++come < needed) {
    rt.retire();
    const uint32_t round = words[1];
    do {
      rt.park(OpKind::BarrierArrive, barrier, pc, kNever);
      if (rt.me().left_after_signal) rt.tell(OpKind::CpuUse, object_id(barrier));
    } while (rt.me().left_after_signal && words[1] == round);  // signal handlers do not end the wait
    rt.tell(OpKind::GoOn, 0);
    rt.retire();
    return 0;
  }
  come = 0;
  words[1] = (words[1] + 1) % kDestroyed;
  uint32_t found[kMostAgents];
  const uint32_t count = waiters(barrier, found);
  for (uint32_t i = 0; i < count; ++i) rt.wake(found[i], object_id(barrier));
  rt.retire();
  return PTHREAD_BARRIER_SERIAL_THREAD;
}

SLALOM_EXPORT int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_barrier_destroy)(barrier);
  const uint64_t pc = SLALOM_PLACE();
  auto* words = reinterpret_cast<uint32_t*>(barrier);
  runtime().arrive(OpKind::BarrierArrive, object_id(barrier), pc);
  check_alive(barrier, pc, "destruction of a barrier that was destroyed");
  if (words[0] != 0) runtime().misuse(pc, "destruction of a barrier at which a thread waits");
  runtime().tell(OpKind::BarrierArrive, object_id(barrier), 0, kDestroys);
  runtime().retire();
  words[1] = kDestroyed;
  return 0;
}
