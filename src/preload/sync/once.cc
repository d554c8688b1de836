// pthread_once and call_once. To the search such a control is a lock that the first caller holds while its
// function runs. Later callers have read the effects of that function.
#include <pthread.h>
#include <threads.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

// The states that glibc has, with other numbers.
enum State : int { New = 0, InProgress = 1, Done = 2 };

volatile int& state_of(int* control) {
  return *control;
}

// Resets the control if the function does not return, because it has thrown or its thread has ended. The next
// caller tries again. This is not a stop, since other agents may be on the stack that is unwound.
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

// The function ran before: reports that the agent has read its effects. No stop, because other agents cannot
// notice.
void learn(int* control, uint64_t pc) {
  Runtime& rt = runtime();
  rt.set_place(pc);
  rt.tell(OpKind::ReadLock, object_id(control));
  rt.tell(OpKind::ReadUnlock, object_id(control), 2);
  rt.retire();
}

// Returns whether the function has run and only a library asks. The unwinder, which finds places, is such a
// library.
bool is_done_for_library(int* control, const void* caller) {
  return state_of(control) == Done && !runtime().is_user_code(reinterpret_cast<uint64_t>(caller) - 1);
}

int run_once(int* control, void (*function)(), uint64_t pc) {
  if (state_of(control) == Done) return learn(control, pc), 0;
  Runtime& rt = runtime();
  rt.set_place(pc);
  // It has read that the function did not run yet; reading is no stop.
  rt.tell(OpKind::CpuUse, object_id(control));
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
