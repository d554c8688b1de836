// The rest of the sanitizer's interface. Programs and libraries call it to describe their own
// synchronisation: happens-before edges, home-made locks, fibers, and accesses to ignore. Functions that only
// query the sanitizer's reports do nothing. Not for its interface for Java, nor for its own tests.
#include <stdint.h>
#include <sys/mman.h>

#include "preload/memory/accesses.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

// As in <sanitizer/tsan_interface.h>.
constexpr unsigned kReadLock = 1 << 3, kTryLockFailed = 1 << 5, kRecursive = 1 << 6 | 1 << 7;
constexpr unsigned kNoSync = 1;

void report(OpKind op, uint64_t object, uint64_t state) {
  runtime().tell(op, object, state);
  runtime().retire();
}

void synchronise(OpKind op, const volatile void* address, void* from) {
  if (!runtime().controls()) return;
  const uint64_t object = object_id(const_cast<const void*>(address));
  runtime().arrive(op, object, access_place(from));
  report(op, object, 1);
}

// At these calls the thread has the lock already, or still, so other threads could not see a difference and
// there is no stop. Its accesses have shown how it waited for the lock.
void lock_event(const volatile void* lock, bool takes, unsigned flags, void* from) {
  if (!runtime().controls() || (flags & (kTryLockFailed | kRecursive)) != 0) return;
  runtime().set_place(access_place(from));
  const bool reads = (flags & kReadLock) != 0;
  const OpKind op =
      takes ? (reads ? OpKind::ReadLock : OpKind::Lock) : (reads ? OpKind::ReadUnlock : OpKind::Unlock);
  const uint64_t held = reads ? 2 : 1;
  report(op, object_id(const_cast<const void*>(lock)), takes ? 0 : held);
}

struct Fiber {
  Calls calls;
};
constinit thread_local Fiber own = {};
constinit thread_local Fiber* current = nullptr;  // nullptr means `own`

// As in tsan, a switch orders a fiber's actions on one thread before its actions on the next.
void switch_to(Fiber* next, unsigned flags, void* from) {
  Fiber* last = current != nullptr ? current : &own;
  if (next == last) return;
  if ((flags & kNoSync) == 0) {
    synchronise(OpKind::SemPost, last, from);
    synchronise(OpKind::SemWait, next, from);
  }
  swap_calls(last->calls, next->calls);
  current = next;
}

void external(OpKind op, const void* address, void* caller) {
  if (runtime().controls() && sees(op, address)) tell_range(op, address, 1, access_place(caller));
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)
#define WEAK SLALOM_EXPORT __attribute__((weak))

SLALOM_EXPORT void __tsan_acquire(void* address) {
  synchronise(OpKind::SemWait, address, FROM);
}
SLALOM_EXPORT void __tsan_release(void* address) {
  synchronise(OpKind::SemPost, address, FROM);
}

SLALOM_EXPORT void __tsan_mutex_create(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_destroy(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_pre_lock(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_post_lock(void* lock, unsigned flags, int) {
  lock_event(lock, true, flags, FROM);
}
SLALOM_EXPORT int __tsan_mutex_pre_unlock(void* lock, unsigned flags) {
  lock_event(lock, false, flags, FROM);
  return 0;
}
SLALOM_EXPORT void __tsan_mutex_post_unlock(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_pre_signal(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_post_signal(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_pre_divert(void*, unsigned) {}
SLALOM_EXPORT void __tsan_mutex_post_divert(void*, unsigned) {}

SLALOM_EXPORT void* __tsan_get_current_fiber() {
  return current != nullptr ? current : &own;
}
SLALOM_EXPORT void* __tsan_create_fiber(unsigned) {
  const long at =
      raw_syscall(SYS_mmap, 0, sizeof(Fiber), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return reinterpret_cast<void*>(at);
}
SLALOM_EXPORT void __tsan_destroy_fiber(void* fiber) {
  raw_syscall(SYS_munmap, reinterpret_cast<long>(fiber), sizeof(Fiber));
}
SLALOM_EXPORT void __tsan_switch_to_fiber(void* fiber, unsigned flags) {
  switch_to(static_cast<Fiber*>(fiber), flags, FROM);
}
SLALOM_EXPORT void __tsan_set_fiber_name(void*, const char*) {}

// Accesses to an object as a whole, reported by code that knows whether it only reads.
SLALOM_EXPORT void* __tsan_external_register_tag(const char*) {
  return nullptr;
}
SLALOM_EXPORT void __tsan_external_register_header(void*, const char*) {}
SLALOM_EXPORT void __tsan_external_assign_tag(void*, void*) {}
SLALOM_EXPORT void __tsan_external_read(void* address, void* caller, void*) {
  external(OpKind::Load, address, caller);
}
SLALOM_EXPORT void __tsan_external_write(void* address, void* caller, void*) {
  external(OpKind::Store, address, caller);
}

// The caller passes the place as the instruction's own address.
#define GIVEN(name, op)                                                                             \
  SLALOM_EXPORT void __tsan_##name##_range_pc(void* address, unsigned long size, void* pc) {        \
    if (runtime().controls() && sees(op, address)) tell_range(op, address, size, access_place(pc)); \
  }                                                                                                 \
  GIVEN_SIZE(name, op, 1)                                                                           \
  GIVEN_SIZE(name, op, 2) GIVEN_SIZE(name, op, 4) GIVEN_SIZE(name, op, 8) GIVEN_SIZE(name, op, 16)
#define GIVEN_SIZE(name, op, size)                                                                  \
  SLALOM_EXPORT void __tsan_##name##size##_pc(void* address, void* pc) {                            \
    if (runtime().controls() && sees(op, address)) tell_range(op, address, size, access_place(pc)); \
  }
GIVEN(read, OpKind::Load)
GIVEN(write, OpKind::Store)

SLALOM_EXPORT void __tsan_ignore_thread_begin() {
  ignore(OpKind::Load, 1);
  ignore(OpKind::Store, 1);
}
SLALOM_EXPORT void __tsan_ignore_thread_end() {
  ignore(OpKind::Load, -1);
  ignore(OpKind::Store, -1);
}

// Functions that query reports, or that the user may define.
WEAK const char* __tsan_default_options() {
  return "";
}
WEAK const char* __tsan_default_suppressions() {
  return "";
}
WEAK void __tsan_on_report(void*) {}
WEAK int __tsan_symbolize_external(void*, char*, int, char*, int, int*, int*) {
  return 0;
}
WEAK void __tsan_symbolize_external_ex(void*, void*, void*) {}
SLALOM_EXPORT void __tsan_flush_memory() {}
SLALOM_EXPORT const char* __tsan_locate_address(void*, char* name, unsigned long size, void**,
                                                unsigned long*) {
  if (size > 0) *name = 0;
  return "";
}
SLALOM_EXPORT int __tsan_get_alloc_stack(void*, void**, unsigned long, int*, void*) {
  return 0;
}
SLALOM_EXPORT void* __tsan_get_current_report() {
  return nullptr;
}
#define NOTHING(what)                            \
  SLALOM_EXPORT int __tsan_get_report_##what() { \
    return 0;                                    \
  }
NOTHING(data)
NOTHING(loc)
NOTHING(loc_object_type)
NOTHING(mop)
NOTHING(mutex)
NOTHING(stack)
NOTHING(tag)
NOTHING(thread)
NOTHING(unique_tid)

// The older annotations from Valgrind. The first two parameters are a file and a line.
#define ANNOTATE(name, ...) SLALOM_EXPORT void Annotate##name(const char*, int, ##__VA_ARGS__)
#define ANNOTATES_NOTHING(name, ...) \
  ANNOTATE(name, ##__VA_ARGS__) {}

ANNOTATE(HappensBefore, const volatile void* address) {
  synchronise(OpKind::SemPost, address, FROM);
}
ANNOTATE(HappensAfter, const volatile void* address) {
  synchronise(OpKind::SemWait, address, FROM);
}
SLALOM_EXPORT void WTFAnnotateHappensBefore(const char*, int, const volatile void* address) {
  synchronise(OpKind::SemPost, address, FROM);
}
SLALOM_EXPORT void WTFAnnotateHappensAfter(const char*, int, const volatile void* address) {
  synchronise(OpKind::SemWait, address, FROM);
}
ANNOTATE(RWLockAcquired, const volatile void* lock, unsigned long writes) {
  lock_event(lock, true, writes != 0 ? 0 : kReadLock, FROM);
}
ANNOTATE(RWLockReleased, const volatile void* lock, unsigned long writes) {
  lock_event(lock, false, writes != 0 ? 0 : kReadLock, FROM);
}
ANNOTATE(BenignRace, const volatile void* address, const char*) {
  ignore_memory(const_cast<const void*>(address), 1);
}
ANNOTATE(BenignRaceSized, const volatile void* address, unsigned long size, const char*) {
  ignore_memory(const_cast<const void*>(address), size);
}
SLALOM_EXPORT void WTFAnnotateBenignRaceSized(const char*, int, const volatile void* address,
                                              unsigned long size, const char*) {
  ignore_memory(const_cast<const void*>(address), size);
}
ANNOTATE(IgnoreReadsBegin) {
  ignore(OpKind::Load, 1);
}
ANNOTATE(IgnoreReadsEnd) {
  ignore(OpKind::Load, -1);
}
ANNOTATE(IgnoreWritesBegin) {
  ignore(OpKind::Store, 1);
}
ANNOTATE(IgnoreWritesEnd) {
  ignore(OpKind::Store, -1);
}
ANNOTATES_NOTHING(RWLockCreate, const volatile void*)
ANNOTATES_NOTHING(RWLockCreateStatic, const volatile void*)
ANNOTATES_NOTHING(RWLockDestroy, const volatile void*)
ANNOTATES_NOTHING(CondVarSignal, const volatile void*)
ANNOTATES_NOTHING(CondVarSignalAll, const volatile void*)
ANNOTATES_NOTHING(CondVarWait, const volatile void*, const volatile void*)
ANNOTATES_NOTHING(EnableRaceDetection, int)
ANNOTATES_NOTHING(ExpectRace, const volatile void*, const char*)
ANNOTATES_NOTHING(FlushExpectedRaces)
ANNOTATES_NOTHING(FlushState)
ANNOTATES_NOTHING(IgnoreSyncBegin)
ANNOTATES_NOTHING(IgnoreSyncEnd)
ANNOTATES_NOTHING(MemoryIsInitialized, const volatile void*, unsigned long)
ANNOTATES_NOTHING(MemoryIsUninitialized, const volatile void*, unsigned long)
ANNOTATES_NOTHING(MutexIsNotPHB, const volatile void*)
ANNOTATES_NOTHING(MutexIsUsedAsCondVar, const volatile void*)
ANNOTATES_NOTHING(NewMemory, const volatile void*, unsigned long)
ANNOTATES_NOTHING(NoOp, const volatile void*)
ANNOTATES_NOTHING(PCQCreate, const volatile void*)
ANNOTATES_NOTHING(PCQDestroy, const volatile void*)
ANNOTATES_NOTHING(PCQGet, const volatile void*)
ANNOTATES_NOTHING(PCQPut, const volatile void*)
ANNOTATES_NOTHING(PublishMemoryRange, const volatile void*, unsigned long)
ANNOTATES_NOTHING(UnpublishMemoryRange, const volatile void*, unsigned long)
ANNOTATES_NOTHING(ThreadName, const char*)
ANNOTATES_NOTHING(TraceMemory, const volatile void*)
SLALOM_EXPORT int RunningOnValgrind() {
  return 0;
}
SLALOM_EXPORT double ValgrindSlowdown() {
  return 1;
}
