// OpenMP as gcc compiles it, as calls of libgomp. libgomp does the work, and the runtime reports the meaning
// of each call. libgomp's threads are ordinary ones, and its waits are controlled
// (preload/openmp/inline_calls.h). But it synchronises by atomic operations that the runtime does not see. So
// the functions here report what comes before what (Release and Acquire), and which thread takes something
// that others could have had (Claim), with a choice before it.
//
// A path names each object: that of a team is its number in the task that started it. So names mean the same
// in every execution. Not for tasks that end on an event (detach), nor for target devices.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

// The running thread's position in OpenMP's terms.
struct Team {
  uint64_t id = 0;      // 0 if there is none
  uint64_t loop = 0;    // the current shared construct: a loop, sections, a single block
  uint32_t number = 0;  // the thread's number in the team
  uint32_t size = 1;
  uint32_t barriers = 0, loops = 0;  // that the thread has met in the team
  uint32_t counters = 0;             // loop counters, in a loop whose iterations wait for each other
};
struct Task {
  static constexpr uint32_t kMostGroups = 16;  // nesting limit
  uint64_t id = 0;
  uint32_t teams = 0, tasks = 0, groups = 0;  // begun by this task
  uint32_t depth = 0;                         // nesting depth of groups
  uint64_t group[kMostGroups] = {};           // the groups that enclose it
};
struct OpenMpState {
  Team team;
  Task task;
};
OpenMpState& openmp_state();

inline uint64_t openmp_object(OpenMpObject kind, uint64_t path) {
  constexpr uint64_t kMask = (uint64_t{1} << kOpenMpBits) - 1;
  return kOpenMpObjects + (static_cast<uint64_t>(kind) << kOpenMpBits) + (mix(path) & kMask);
}

// Runtime::arrive(), further down the stack. It leaves data on the stack that differs in a replay, and
// functions of the program later run where libgomp's have been.
void openmp_arrive(OpKind op, uint64_t object, uint64_t pc, Need need = Need::Nothing,
                   const void* at = nullptr);
// Begins a step of its own, before which other agents may run, unless the thread has just come back from a
// wait. The caller reports what it did, and retires.
void openmp_step(OpKind op, uint64_t object, uint64_t pc);
// A whole step that takes something.
void openmp_claim(uint64_t object, uint64_t pc);
inline void openmp_release(uint64_t object) {
  runtime().tell(OpKind::Release, object, 1);
}
inline void openmp_acquire(uint64_t object) {
  runtime().tell(OpKind::Acquire, object);
}
// Call these before and after the running thread waits at a barrier of its team.
void arrive_at_barrier(uint64_t pc);
void leave_barrier(uint64_t pc);
uint64_t openmp_barrier();  // the barrier's object
// The running thread has waited in libgomp and has its turn again. The caller of libgomp reports what the
// wait means, unless the thread finds a task there.
void openmp_waited();
// Reports that the running thread looks for a task to execute.
void look_for_task();
bool openmp_has_tasks();
void openmp_adds_task();
// The object of the team's tasks before its barrier of that number.
inline uint64_t tasks_until(uint64_t team, uint32_t barrier) {
  return openmp_object(OpenMpObject::Tasks, combine(team, barrier, 1));
}

// Construct around a call of libgomp: names the object that the thread waits for in it.
class WaitsFor {
 public:
  explicit WaitsFor(uint64_t object);
  ~WaitsFor();
  WaitsFor(const WaitsFor&) = delete;
  WaitsFor& operator=(const WaitsFor&) = delete;

 private:
  uint64_t before_;
};

// Returns the function that this library's function of that name hides. A libgomp that a module has brought
// along is not in the default search scope.
void* find_openmp(const char* name);

}  // namespace slalom::preload

#define SLALOM_OPENMP(name)                            \
  ([] {                                                \
    static void* found = nullptr;                      \
    if (found == nullptr) found = find_openmp(#name);  \
    return reinterpret_cast<decltype(&::name)>(found); \
  }())

// Defines a function whose arguments hardly matter. It calls `action` with the place and the first argument,
// then jumps to libgomp's own function.
#define SLALOM_BEFORE(name, action)                                                                     \
  extern "C"                                                                                            \
      __attribute__((used)) void* slalom_before_##name(void* from, const void* stack, uint64_t first) { \
    static void* found = nullptr;                                                                       \
    if (found == nullptr) found = find_openmp(#name);                                                   \
    if (runtime().controls()) action(runtime().place(from, stack), first);                              \
    return found;                                                                                       \
  }                                                                                                     \
  SLALOM_EXPORT __attribute__((naked)) void name() {                                                    \
    asm("push %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tpush %rax\n\t"     \
        ".cfi_adjust_cfa_offset 56\n\t"                                                                 \
        "mov %rdi, %rdx\n\tmov 56(%rsp), %rdi\n\tlea 64(%rsp), %rsi\n\t"                                \
        "call slalom_before_" #name                                                                     \
        "\n\t"                                                                                          \
        "mov %rax, %r11\n\t"                                                                            \
        "pop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\t"            \
        ".cfi_adjust_cfa_offset -56\n\t"                                                                \
        "jmp *%r11");                                                                                   \
  }
