// OpenMP, as gcc compiles it: calls of libgomp, which does the work, with what it means around them. Its
// threads are ordinary ones, and its waits are controlled (preload/openmp/inline_calls.h), but how its
// threads synchronise is hidden in atomic operations of its own. So it is told here: what comes before what
// (Release and Acquire), and who takes what others could have had (Claim), with a choice before it.
//
// All objects are named by a path: of the team, by its number in the task that started it. So they mean the
// same in every execution. Not here: tasks that end when somebody says so (detach), and target devices.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {

// Where the running thread is, in OpenMP's terms.
struct Team {
  uint64_t id = 0;      // 0: there is none
  uint64_t loop = 0;    // what it shares with others now: a loop, sections, a single block
  uint32_t number = 0;  // the thread's, in the team
  uint32_t size = 1;
  uint32_t barriers = 0, loops = 0;  // that it has met in the team
  uint32_t counters = 0;             // of an iteration, in a loop where these wait for each other
};
struct Task {
  static constexpr uint32_t kMostGroups = 16;  // in each other
  uint64_t id = 0;
  uint32_t teams = 0, tasks = 0, groups = 0;  // that it has begun
  uint32_t depth = 0;                         // of groups,
  uint64_t group[kMostGroups] = {};           // which it is in
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

// Runtime::arrive(), further down the stack: what that leaves there is another thing in a replay, and
// functions of the program come to where libgomp's have been.
void openmp_arrive(OpKind op, uint64_t object, uint64_t pc, Need need = Need::Nothing,
                   const void* at = nullptr);
// A step of its own, before which others may come; unless the thread has just come back from a wait. The
// caller tells what it did, and retires.
void openmp_step(OpKind op, uint64_t object, uint64_t pc);
// The same, that takes something.
void openmp_claim(uint64_t object, uint64_t pc);
inline void openmp_release(uint64_t object) {
  runtime().tell(OpKind::Release, object, 1);
}
inline void openmp_acquire(uint64_t object) {
  runtime().tell(OpKind::Acquire, object);
}
// At a barrier of the running thread's team: before the thread waits there, and after it.
void arrive_at_barrier(uint64_t pc);
void leave_barrier(uint64_t pc);
uint64_t openmp_barrier();  // which that is
// The running thread has waited in libgomp, and has its turn again: what that means is told by whoever called
// libgomp, unless it finds a task there.
void openmp_waited();
// It looks whether there is a task that it could execute.
void look_for_task();
bool openmp_has_tasks();
void openmp_adds_task();
// Of the tasks that the team had until its barrier of that number.
inline uint64_t tasks_until(uint64_t team, uint32_t barrier) {
  return openmp_object(OpenMpObject::Tasks, combine(team, barrier, 1));
}

// While the thread is in libgomp: what it waits for there.
class WaitsFor {
 public:
  explicit WaitsFor(uint64_t object);
  ~WaitsFor();
  WaitsFor(const WaitsFor&) = delete;
  WaitsFor& operator=(const WaitsFor&) = delete;

 private:
  uint64_t before_;
};

// The function of that name that this library's one hides. A libgomp that a module has brought along is not
// among what is looked through by default.
void* find_openmp(const char* name);

}  // namespace slalom::preload

#define SLALOM_OPENMP(name)                            \
  ([] {                                                \
    static void* found = nullptr;                      \
    if (found == nullptr) found = find_openmp(#name);  \
    return reinterpret_cast<decltype(&::name)>(found); \
  }())

// A function whose arguments hardly matter: `action` is called with the place and the first of them, then
// libgomp's own goes on in its place.
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
