// What is done once: pthread_once and call_once. To the search it is a lock that the first caller holds while
// its function runs; who comes after that has read what it did.
#include <pthread.h>
#include <threads.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

// As glibc counts, though not by its numbers.
enum State : int { New = 0, InProgress = 1, Done = 2 };

volatile int& state_of(int* control) {
  return *control;
}

// Ends one whose function does not return: it has thrown, or its thread has ended. The next caller tries
// again. Not a stop of its own, since others may be on the stack that is unwound.
struct Attempt {
  int* control;
  uint64_t pc;
  bool returned = false;
  ~Attempt() {
    if (returned) return;
    Runtime& rt = runtime();
    state_of(control) = New;
    rt.set_place(pc);
    rt.tell(OpKind::Unlock, object_id(control), 1);
    rt.retire();
  }
};

// It was done before: nothing that others could notice, and no stop.
void learn(int* control, uint64_t pc) {
  Runtime& rt = runtime();
  rt.set_place(pc);
  rt.tell(OpKind::ReadLock, object_id(control));
  rt.tell(OpKind::ReadUnlock, object_id(control), 2);
  rt.retire();
}

// Is that all there is to do, and only for a library? That of the unwinder, which finds places, is one.
bool is_done_for_library(int* control, const void* caller) {
  return state_of(control) == Done && !runtime().is_user_code(reinterpret_cast<uint64_t>(caller) - 1);
}

int run_once(int* control, void (*function)(), uint64_t pc) {
  if (state_of(control) == Done) return learn(control, pc), 0;
  Runtime& rt = runtime();
  rt.set_place(pc);
  rt.tell(OpKind::CpuUse, object_id(control));  // that it was not done: to look is no stop
  rt.arrive(OpKind::Lock, object_id(control), pc, Need::Once, control);
  rt.tell(OpKind::Lock, object_id(control));
  const bool first = state_of(control) == New;
  if (first) state_of(control) = InProgress;
  rt.retire();
  if (first) {
    Attempt attempt{control, pc};
    function();
    attempt.returned = true;
  }
  rt.arrive(OpKind::Unlock, object_id(control), pc);
  state_of(control) = Done;
  rt.tell(OpKind::Unlock, object_id(control), 1);
  rt.retire();
  return 0;
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int pthread_once(pthread_once_t* control, void (*function)()) {
  if (!runtime().controls()) return SLALOM_REAL(pthread_once)(control, function);
  if (is_done_for_library(control, __builtin_return_address(0))) return 0;
  return run_once(control, function, SLALOM_PLACE());
}
SLALOM_EXPORT void call_once(once_flag* flag, void (*function)()) {
  if (!runtime().controls()) return SLALOM_REAL(call_once)(flag, function);
  if (is_done_for_library(reinterpret_cast<int*>(flag), __builtin_return_address(0))) return;
  run_once(reinterpret_cast<int*>(flag), function, SLALOM_PLACE());
}
