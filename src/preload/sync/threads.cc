// Threads: creation, end, joining, cancellation, and the destructors at a thread's end. start_thread()
// (preload/launch/forked.cc) makes the real thread.
#include "preload/sync/threads.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/system_signals.h"

namespace slalom::preload {

struct LocalDestructor {
  void (*function)(void*);
  void* object;
  LocalDestructor* next;
};

namespace {

// Destructors of keys. Kept here because libc would call them only when the real thread ends.
using Destructor = void (*)(void*);
constinit Destructor key_destructors[PTHREAD_KEYS_MAX] = {};
constinit pthread_key_t keys_used = 0;  // greater than every created key

void run_destructors() {
  Agent& me = runtime().me();
  while (me.destructors != nullptr) {
    LocalDestructor* first = me.destructors;
    me.destructors = first->next;
    first->function(first->object);
    free(first);
  }
  for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; ++round) {
    bool any = false;
    for (pthread_key_t key = 0; key < keys_used; ++key) {
      void* value = key_destructors[key] != nullptr ? pthread_getspecific(key) : nullptr;
      if (value == nullptr) continue;
      any = true;
      pthread_setspecific(key, nullptr);
      const InAllocator maybe(reinterpret_cast<const void*>(key_destructors[key]));
      key_destructors[key](value);
    }
    if (!any) break;
  }
}

// Also reached by pthread_exit, which unwinds the stack up to here.
void end_thread(void*) {
  finish_agent();
}

// Returns whether OpenMP's library starts the thread for a team. The library detaches such threads, but only
// when they end.
bool is_of_team(void* (*start)(void*)) {
  Runtime& rt = runtime();
  return rt.me().team_entry != 0 && !rt.is_user_code(reinterpret_cast<uint64_t>(start));
}

// Returns the user's function that the thread runs. std::thread keeps it in an object, behind a function of
// the library. OpenMP runs it in threads of its own.
uint64_t entry_of(void* (*start)(void*), void* argument) {
  Runtime& rt = runtime();
  const auto direct = reinterpret_cast<uint64_t>(start);
  if (is_of_team(start)) return rt.me().team_entry;
  if (rt.is_user_code(direct) || argument == nullptr || reinterpret_cast<uintptr_t>(argument) % 8 != 0)
    return direct;
  const auto* words = static_cast<const uint64_t*>(argument);
  const auto* functions = reinterpret_cast<const uint64_t*>(words[0]);
  // A vtable lies in the user's module, not far from its code.
  if (!rt.is_user_code(words[0]) || !rt.is_user_code(functions[2])) return direct;
  const size_t count = malloc_usable_size(argument) / 8;
  for (size_t i = 1; i < count && i < 8; ++i)
    if (rt.is_user_code(words[i])) return words[i];
  return functions[2];
}

int join(pthread_t thread, void** result, uint64_t pc, uint64_t deadline, bool try_only) {
  Runtime& rt = runtime();
  const uint32_t index = rt.find(thread);
  if (index == kNoAgent) {
    rt.note_missing_thread();
    return ESRCH;
  }
  Agent& agent = rt.agent(index);
  if (agent.joined) rt.misuse(pc, "join of a thread that was joined already");
  if (agent.detached) rt.misuse(pc, "join of a thread that was detached");
  if (index == rt.self()) return EDEADLK;
  const uint64_t object = agent_object(rt.slot(index));
  rt.me().target = index;
  if (!try_only) rt.cancel_point(true);
  const bool done = try_only ? (rt.arrive(OpKind::TryLock, object, pc), rt.ended(index))
                             : rt.arrive(unless_limited(OpKind::Join, deadline), object, pc, Need::AgentEnd,
                                         nullptr, deadline);
  // Reports no dependence on cancellation if main joins: most executions end with such joins, and reduction
  // assumes that no thread cancels main then.
  if (!try_only && rt.self() != 0) rt.cancel_point(false);
  if (!try_only && rt.self() == 0) {
    rt.me().at_cancel_point = false;
    rt.end_if_cancelled();
  }
  if (!done) {
    rt.tell(OpKind::TryLock, object, 1, 0);
    rt.retire(true);
    return try_only ? EBUSY : ETIMEDOUT;
  }
  rt.tell(OpKind::Join, object, 1, 0, index);
  rt.retire();
  agent.joined = true;
  if (result != nullptr) *result = agent.result;
  return 0;
}

// Until here the thread could be cancelled at any place, so this is an operation.
void leave_asynchronous(uint64_t pc) {
  const Agent& me = runtime().me();
  if (me.asynchronous && me.cancellable) runtime().pass(OpKind::GoOn, pc, false);
}

}  // namespace

int create_agent(pthread_t* thread, const pthread_attr_t* wanted, void* (*start)(void*), void* argument,
                 uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::Spawn, rt.child_id().raw, pc);
  const uint32_t index = rt.add_agent(entry_of(start, argument));
  if (index == kNoAgent) {
    rt.note_uncontrolled(Uncontrolled::Threads);
    return EAGAIN;
  }
  Agent& agent = rt.agent(index);
  agent.start = start;
  agent.argument = argument;
  int detached = PTHREAD_CREATE_JOINABLE;
  if (wanted != nullptr) pthread_attr_getdetachstate(wanted, &detached);
  agent.detached = detached == PTHREAD_CREATE_DETACHED || is_of_team(start);
  sigset_t mask;
  if (wanted != nullptr && pthread_attr_getsigmask_np(wanted, &mask) == 0) agent.blocked = bits_of(&mask);
  pthread_t created{};
  // libc allocates memory for the thread, and the program's own allocator may let other agents run meanwhile.
  agent.need = Need::Wakeup;
  const int result = start_thread(index, wanted, created);
  agent.need = Need::Nothing;
  agent.thread = created;
  if (result == 0) *thread = created;
  rt.tell(OpKind::Spawn, agent_object(rt.slot(index)), 0, 0, index);
  rt.retire();
  if (result != 0) rt.slot(index).state = Slot::State::Ended;
  return result;
}

void forget_keys() {
  for (pthread_key_t key = 0; key < keys_used; ++key)
    if (pthread_getspecific(key) != nullptr) pthread_setspecific(key, nullptr);
}

void finish_agent() {
  runtime().me().cancellable = false;
  run_destructors();
  runtime().end_agent();
}

void run_agent(uint32_t index) {
  Agent& me = runtime().agent(index);
  runtime().enter(index);
  me.base = __builtin_frame_address(0);
  pthread_cleanup_push(end_thread, nullptr);
  me.result = me.start(me.argument);
  pthread_cleanup_pop(1);
}

// Calls main() as libc does, in an execution.
int run_main(int (*entry)(int, char**, char**), int argc, char** argv, char** environment) {
  int result = 0;
  runtime().me().base = __builtin_frame_address(0);
  pthread_cleanup_push(end_thread, nullptr);
  result = entry(argc, argv, environment);
  pthread_cleanup_pop(0);
  return result;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                                 void* argument) noexcept {
  if (!runtime().controls()) {
    if (runtime().connected()) runtime().note_foreign_thread(reinterpret_cast<uint64_t>(start));
    return SLALOM_REAL(pthread_create)(thread, attributes, start, argument);
  }
  return create_agent(thread, attributes, start, argument, SLALOM_PLACE());
}
// libc sees a stack that it was given and a joinable thread; this function restores the program's attributes.
SLALOM_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes) noexcept {
  Runtime& rt = runtime();
  const int result = SLALOM_REAL(pthread_getattr_np)(thread, attributes);
  const uint32_t index = result == 0 && rt.controls() ? rt.find(thread) : kNoAgent;
  if (index == kNoAgent || index == 0) return result;
  const Agent& agent = rt.agent(index);
  if (agent.guard != 0) pthread_attr_setguardsize(attributes, agent.guard);
  pthread_attr_setdetachstate(attributes, agent.detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
  return result;
}
SLALOM_EXPORT int pthread_join(pthread_t thread, void** result) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_join)(thread, result);
  return join(thread, result, SLALOM_PLACE(), kNever, false);
}
SLALOM_EXPORT int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_tryjoin_np)(thread, result);
  return join(thread, result, SLALOM_PLACE(), kNever, true);
}
SLALOM_EXPORT int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_timedjoin_np)(thread, result, until);
  if (!valid(until)) return EINVAL;
  return join(thread, result, SLALOM_PLACE(), from_clock(CLOCK_REALTIME, *until), false);
}
SLALOM_EXPORT int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock,
                                       const timespec* until) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_clockjoin_np)(thread, result, clock, until);
  if (!valid(until)) return EINVAL;
  return join(thread, result, SLALOM_PLACE(), from_clock(clock, *until), false);
}
SLALOM_EXPORT int pthread_detach(pthread_t thread) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_detach)(thread);
  const uint32_t index = runtime().find(thread);
  if (index == kNoAgent) return ESRCH;
  if (runtime().agent(index).detached) return EINVAL;
  if (runtime().agent(index).joined)
    runtime().misuse(SLALOM_PLACE(), "detachment of a thread that was joined already");
  runtime().agent(index).detached = true;
  return 0;
}
SLALOM_EXPORT void pthread_exit(void* result) {
  if (runtime().controls()) {
    runtime().me().result = result;
    runtime().me().cancellable = false;
  }
  SLALOM_REAL(pthread_exit)(result);
  __builtin_unreachable();
}

// The thread ends at its next cancellation point, or at its next operation if its type is asynchronous. Code
// between two operations runs at once, so ending there is as good as ending anywhere. Cancellation ends a
// wait at such a point.
SLALOM_EXPORT int pthread_cancel(pthread_t thread) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_cancel)(thread);
  Runtime& rt = runtime();
  const uint32_t index = rt.find(thread);
  if (index == kNoAgent) return ESRCH;
  rt.arrive(OpKind::Signal, agent_object(rt.slot(index)), SLALOM_PLACE());
  rt.tell(OpKind::Signal, agent_object(rt.slot(index)), 0, 1);
  rt.agent(index).cancelled = true;
  rt.retire();
  return 0;
}
SLALOM_EXPORT int pthread_setcancelstate(int state, int* before) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_setcancelstate)(state, before);
  if (state != PTHREAD_CANCEL_ENABLE && state != PTHREAD_CANCEL_DISABLE) return EINVAL;
  leave_asynchronous(SLALOM_PLACE());
  Agent& me = runtime().me();
  if (before != nullptr) *before = me.cancellable ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE;
  me.cancellable = state == PTHREAD_CANCEL_ENABLE;
  if (me.asynchronous) runtime().cancel_point(false);
  return 0;
}
SLALOM_EXPORT int pthread_setcanceltype(int type, int* before) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_setcanceltype)(type, before);
  if (type != PTHREAD_CANCEL_DEFERRED && type != PTHREAD_CANCEL_ASYNCHRONOUS) return EINVAL;
  leave_asynchronous(SLALOM_PLACE());
  Agent& me = runtime().me();
  if (before != nullptr) *before = me.asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED;
  me.asynchronous = type == PTHREAD_CANCEL_ASYNCHRONOUS;
  if (me.asynchronous) runtime().cancel_point(false);
  return 0;
}
SLALOM_EXPORT void pthread_testcancel() {
  if (!runtime().controls()) return SLALOM_REAL(pthread_testcancel)();
  Runtime& rt = runtime();
  rt.arrive(OpKind::GoOn, 0, SLALOM_PLACE());
  rt.cancel_point(false);
  rt.tell(OpKind::GoOn, 0);
  rt.retire();
}

SLALOM_EXPORT int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
  if (!runtime().connected() && !runtime().controls())
    return SLALOM_REAL(pthread_key_create)(key, destructor);
  const int result = SLALOM_REAL(pthread_key_create)(key, nullptr);
  if (result == 0 && *key < PTHREAD_KEYS_MAX) {
    key_destructors[*key] = destructor;
    if (*key >= keys_used) keys_used = *key + 1;
  }
  return result;
}
SLALOM_EXPORT int pthread_key_delete(pthread_key_t key) noexcept {
  if (key < PTHREAD_KEYS_MAX) key_destructors[key] = nullptr;
  return SLALOM_REAL(pthread_key_delete)(key);
}
SLALOM_EXPORT int tss_create(tss_t* key, tss_dtor_t destructor) {
  return pthread_key_create(key, destructor) == 0 ? thrd_success : thrd_error;
}

extern "C" int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);
SLALOM_EXPORT int __cxa_thread_atexit_impl(void (*function)(void*), void* object, void* module) {
  if (!runtime().controls() || runtime().self() == 0)
    return SLALOM_REAL(__cxa_thread_atexit_impl)(function, object, module);
  auto* entry = static_cast<LocalDestructor*>(malloc(sizeof(LocalDestructor)));
  if (entry == nullptr) return -1;
  *entry = {function, object, runtime().me().destructors};
  runtime().me().destructors = entry;
  return 0;
}

namespace {

// C11 thread functions return a number where POSIX ones return a pointer.
struct C11Start {
  thrd_start_t function;
  void* argument;
};
void* run_c11(void* data) {
  const C11Start start = *static_cast<C11Start*>(data);
  free(data);
  return reinterpret_cast<void*>(intptr_t{start.function(start.argument)});
}

}  // namespace

SLALOM_EXPORT int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  if (!runtime().controls()) return SLALOM_REAL(thrd_create)(thread, function, argument);
  auto* start = static_cast<C11Start*>(malloc(sizeof(C11Start)));
  if (start == nullptr) return thrd_nomem;
  *start = {function, argument};
  const int result = create_agent(thread, nullptr, run_c11, start, SLALOM_PLACE());
  if (result == 0) runtime().slot(runtime().find(*thread)).entry = reinterpret_cast<uint64_t>(function);
  return result == 0 ? thrd_success : thrd_error;
}
SLALOM_EXPORT int thrd_join(thrd_t thread, int* result) {
  if (!runtime().controls()) return SLALOM_REAL(thrd_join)(thread, result);
  void* value = nullptr;
  if (join(thread, &value, SLALOM_PLACE(), kNever, false) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<intptr_t>(value));
  return thrd_success;
}
SLALOM_EXPORT int thrd_detach(thrd_t thread) {
  return pthread_detach(thread) == 0 ? thrd_success : thrd_error;
}
SLALOM_EXPORT void thrd_exit(int result) {
  pthread_exit(reinterpret_cast<void*>(intptr_t{result}));
  __builtin_unreachable();
}
