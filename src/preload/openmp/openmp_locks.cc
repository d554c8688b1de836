// The model of OpenMP's locks: critical sections, the lock for atomic updates that no instruction can do, and
// omp_lock_t. libgomp's own locks are not used. The first word of a lock's memory is its owner's thread id; 0
// if it is free.
#include "preload/openmp/openmp.h"
#include "preload/runtime/raw.h"

namespace slalom::preload {

// A lock that its holder may set again; `count` is the nesting depth.
struct NestLock {
  uint32_t word, count;
};

namespace {

constinit uint32_t unnamed_critical = 0, atomic_updates = 0;

uint64_t critical_object() {
  return openmp_object(OpenMpObject::Critical, 0);
}
uint64_t atomic_object() {
  return openmp_object(OpenMpObject::Atomic, 0);
}

uint32_t own_mark() {
  return static_cast<uint32_t>(kPid) + runtime().self();
}

void lock(uint32_t* word, uint64_t object, uint64_t pc) {
  Runtime& rt = runtime();
  openmp_arrive(OpKind::Lock, object, pc, Need::OwnedLock, word);
  rt.tell(OpKind::Lock, object);
  *word = own_mark();
  rt.retire();
}

bool try_lock(uint32_t* word, uint64_t object, uint64_t pc) {
  Runtime& rt = runtime();
  openmp_arrive(OpKind::TryLock, object, pc);
  const bool free = *word == 0;
  rt.tell(OpKind::TryLock, object, free ? 0 : 1, free ? 1 : 0);
  if (free) *word = own_mark();
  rt.retire(!free);
  return free;
}

void unlock(uint32_t* word, uint64_t object, uint64_t pc) {
  Runtime& rt = runtime();
  openmp_arrive(OpKind::Unlock, object, pc);
  if (*word != own_mark())
    rt.misuse(pc, *word == 0 ? "unlock of an OpenMP lock that is not set"
                             : "unlock of an OpenMP lock that another thread has set");
  rt.tell(OpKind::Unlock, object, 1);
  *word = 0;
  rt.retire();
}

void destroy(const uint32_t* word, uint64_t pc) {
  if (*word != 0) runtime().misuse(pc, "destruction of an OpenMP lock that is set");
}

void lock(NestLock* lock, uint64_t pc) {
  if (lock->word != own_mark()) preload::lock(&lock->word, object_id(lock), pc);
  ++lock->count;
}

int try_lock(NestLock* lock, uint64_t pc) {
  if (lock->word != own_mark() && !try_lock(&lock->word, object_id(lock), pc)) return 0;
  return static_cast<int>(++lock->count);
}

void unlock(NestLock* lock, uint64_t pc) {
  const bool last = lock->word != own_mark() || lock->count == 1;
  if (last) unlock(&lock->word, object_id(lock), pc);
  --lock->count;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

extern "C" {
int omp_test_lock(uint32_t*);
int omp_test_nest_lock(NestLock*);
}

#define LOCK(name, action)                                   \
  SLALOM_EXPORT void name() {                                \
    if (!runtime().controls()) return SLALOM_OPENMP(name)(); \
    action;                                                  \
  }
LOCK(GOMP_critical_start, lock(&unnamed_critical, critical_object(), SLALOM_PLACE()))
LOCK(GOMP_critical_end, unlock(&unnamed_critical, critical_object(), SLALOM_PLACE()))
LOCK(GOMP_atomic_start, lock(&atomic_updates, atomic_object(), SLALOM_PLACE()))
LOCK(GOMP_atomic_end, unlock(&atomic_updates, atomic_object(), SLALOM_PLACE()))
#undef LOCK

#define LOCK(name, type, action)                                 \
  SLALOM_EXPORT void name(type* word) {                          \
    if (!runtime().controls()) return SLALOM_OPENMP(name)(word); \
    action;                                                      \
  }
LOCK(GOMP_critical_name_start, uint32_t, lock(word, object_id(word), SLALOM_PLACE()))
LOCK(GOMP_critical_name_end, uint32_t, unlock(word, object_id(word), SLALOM_PLACE()))
LOCK(omp_init_lock, uint32_t, *word = 0)
LOCK(omp_destroy_lock, uint32_t, destroy(word, SLALOM_PLACE()))
LOCK(omp_set_lock, uint32_t, lock(word, object_id(word), SLALOM_PLACE()))
LOCK(omp_unset_lock, uint32_t, unlock(word, object_id(word), SLALOM_PLACE()))
LOCK(omp_init_nest_lock, NestLock, (*word = {}))
LOCK(omp_destroy_nest_lock, NestLock, destroy(&word->word, SLALOM_PLACE()))
LOCK(omp_set_nest_lock, NestLock, lock(word, SLALOM_PLACE()))
LOCK(omp_unset_nest_lock, NestLock, unlock(word, SLALOM_PLACE()))
#undef LOCK

SLALOM_EXPORT int omp_test_lock(uint32_t* word) {
  if (!runtime().controls()) return SLALOM_OPENMP(omp_test_lock)(word);
  return try_lock(word, object_id(word), SLALOM_PLACE()) ? 1 : 0;
}
SLALOM_EXPORT int omp_test_nest_lock(NestLock* word) {
  if (!runtime().controls()) return SLALOM_OPENMP(omp_test_nest_lock)(word);
  return try_lock(word, SLALOM_PLACE());
}
SLALOM_EXPORT void omp_init_lock_with_hint(uint32_t* word, int) {
  omp_init_lock(word);
}
SLALOM_EXPORT void omp_init_nest_lock_with_hint(NestLock* word, int) {
  omp_init_nest_lock(word);
}
