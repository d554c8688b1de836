// Processes that the program starts other than by fork() (for that, see preload/processes/system.cc), and
// waits for them. The runtime does not control these processes, and reports that. A wait for one is like any
// other wait: other threads go on meanwhile, and slalom really waits only if no thread can run
// (preload/processes/outside.cc).
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

extern char** environ;

namespace slalom::preload {
namespace {

// The duration of a libc call that waits for a process by itself.
class WaitingOutside {
 public:
  WaitingOutside() {
    if (ours_) runtime().set_outside(Outside::Endless);
  }
  ~WaitingOutside() {
    if (ours_) runtime().set_outside(Outside::No);
  }
  WaitingOutside(const WaitingOutside&) = delete;
  WaitingOutside& operator=(const WaitingOutside&) = delete;

 private:
  bool ours_ = runtime().controls();
};

void note_program() {
  runtime().note_unreported_signals();
  if (runtime().executes()) runtime().note_uncontrolled(Uncontrolled::Program);
}

// An exec ends the other threads, as an exit does.
void before_exec(bool ours, uint64_t pc) {
  if (!ours) return runtime().note_unreported_signals();
  note_program();
  runtime().pass(OpKind::GoOn, pc, false);
}

template <typename Call>
auto wait_for_child(ChildWait wanted, uint64_t pc, Call call) -> decltype(call()) {
  Runtime& rt = runtime();
  if ((wanted.options & WNOHANG) == 0) rt.let_child_end(wanted);
  const Interruptible waiting(OnSignal::EndsOrRestarts);
  rt.cancel_point(true);
  if (wanted.options & WNOHANG)
    rt.arrive(OpKind::TryLock, kChildObject, pc);
  else
    rt.arrive(OpKind::SemWait, kChildObject, pc, Need::Child, &wanted);
  rt.cancel_point(false);
  if (waiting.ended()) return errno = EINTR, -1;
  const auto result = call();
  rt.tell(OpKind::SemWait, kChildObject, 1);
  rt.retire((wanted.options & WNOHANG) != 0);
  return result;
}

ChildWait as_waitid(pid_t child, int options) {
  const idtype_t kind = child == -1 ? P_ALL : child > 0 ? P_PID : P_PGID;
  return {kind, child < 0 ? -child : child, options | WEXITED};
}

// Collects the arguments of execl() and its kin, up to the terminating nullptr. Returns false with errno if
// there are too many.
constexpr int kMostArguments = 1024;
bool gather(va_list& list, char** arguments, const char* first) {
  int count = 0;
  arguments[count] = const_cast<char*>(first);
  while (arguments[count] != nullptr) {
    if (++count == kMostArguments) return errno = E2BIG, false;
    arguments[count] = va_arg(list, char*);
  }
  return true;
}

struct Cloned {
  int (*function)(void*);
  void* argument;
};
int run_cloned(void* data) {
  const Cloned cloned = *static_cast<Cloned*>(data);
  runtime().become_child();
  return cloned.function(cloned.argument);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT pid_t wait4(pid_t child, int* status, int options, rusage* use) {
  const pid_t real = runtime().real_process(child);
  const auto wait = [&] { return runtime().number_of(SLALOM_REAL(wait4)(real, status, options, use)); };
  return runtime().controls() ? wait_for_child(as_waitid(real, options), SLALOM_PLACE(), wait) : wait();
}
SLALOM_EXPORT pid_t wait3(int* status, int options, rusage* use) {
  return wait4(-1, status, options, use);
}
SLALOM_EXPORT pid_t waitpid(pid_t child, int* status, int options) {
  return wait4(child, status, options, nullptr);
}
SLALOM_EXPORT pid_t wait(int* status) {
  return wait4(-1, status, 0, nullptr);
}
SLALOM_EXPORT int waitid(idtype_t kind, id_t id, siginfo_t* info, int options) {
  if (kind == P_PID || kind == P_PGID) id = static_cast<id_t>(runtime().real_process(static_cast<int>(id)));
  const auto wait = [&] {
    const int result = SLALOM_REAL(waitid)(kind, id, info, options);
    if (result == 0 && info != nullptr) info->si_pid = runtime().number_of(info->si_pid);
    return result;
  };
  return runtime().controls() ? wait_for_child({kind, static_cast<int>(id), options}, SLALOM_PLACE(), wait)
                              : wait();
}

SLALOM_EXPORT int system(const char* command) {
  if (command != nullptr) note_program();
  const WaitingOutside waiting;
  return SLALOM_REAL(system)(command);
}
SLALOM_EXPORT FILE* popen(const char* command, const char* mode) {
  note_program();
  return SLALOM_REAL(popen)(command, mode);
}
SLALOM_EXPORT int pclose(FILE* stream) {
  const WaitingOutside waiting;
  return SLALOM_REAL(pclose)(stream);
}

#define SPAWN(name)                                                                                    \
  SLALOM_EXPORT int name(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,    \
                         const posix_spawnattr_t* attributes, char* const* arguments,                  \
                         char* const* environment) noexcept {                                          \
    note_program();                                                                                    \
    pid_t started = 0;                                                                                 \
    const int result = SLALOM_REAL(name)(&started, path, actions, attributes, arguments, environment); \
    if (result != 0) return result;                                                                    \
    if (runtime().executes()) started = runtime().note_child(started);                                 \
    if (child != nullptr) *child = started;                                                            \
    return 0;                                                                                          \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
#undef SPAWN

SLALOM_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  before_exec(runtime().controls(), SLALOM_PLACE());
  return SLALOM_REAL(execve)(path, arguments, environment);
}
SLALOM_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  before_exec(runtime().controls(), SLALOM_PLACE());
  return SLALOM_REAL(execv)(path, arguments);
}
SLALOM_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  before_exec(runtime().controls(), SLALOM_PLACE());
  return SLALOM_REAL(execvp)(file, arguments);
}
SLALOM_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  before_exec(runtime().controls(), SLALOM_PLACE());
  return SLALOM_REAL(execvpe)(file, arguments, environment);
}
SLALOM_EXPORT int fexecve(int file, char* const* arguments, char* const* environment) noexcept {
  before_exec(runtime().controls(), SLALOM_PLACE());
  return SLALOM_REAL(fexecve)(file, arguments, environment);
}
SLALOM_EXPORT int execveat(int folder, const char* path, char* const* arguments, char* const* environment,
                           int flags) noexcept {
  before_exec(runtime().controls(), SLALOM_PLACE());
  return SLALOM_REAL(execveat)(folder, path, arguments, environment, flags);
}
#define EXEC_LIST(name, with_environment, call)                                      \
  SLALOM_EXPORT int name(const char* path, const char* first, ...) noexcept {        \
    char* arguments[kMostArguments];                                                 \
    va_list list;                                                                    \
    va_start(list, first);                                                           \
    const bool all = gather(list, arguments, first);                                 \
    char** environment = all && (with_environment) ? va_arg(list, char**) : environ; \
    va_end(list);                                                                    \
    if (!all) return -1;                                                             \
    before_exec(runtime().controls(), SLALOM_PLACE());                               \
    return SLALOM_REAL(call)(path, arguments, environment);                          \
  }
EXEC_LIST(execl, false, execve)
EXEC_LIST(execle, true, execve)
EXEC_LIST(execlp, false, execvpe)
#undef EXEC_LIST

SLALOM_EXPORT int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept {
  va_list list;
  va_start(list, argument);
  auto* parents = va_arg(list, pid_t*);
  void* local = va_arg(list, void*);
  auto* childs = va_arg(list, pid_t*);
  va_end(list);
  if (!runtime().controls())
    return SLALOM_REAL(clone)(function, stack, flags, argument, parents, local, childs);
  if (flags & CLONE_VM) {
    runtime().note_uncontrolled(Uncontrolled::ForeignThread);
    return SLALOM_REAL(clone)(function, stack, flags, argument, parents, local, childs);
  }
  runtime().pass_fork(SLALOM_PLACE());
  runtime().note_uncontrolled(Uncontrolled::Fork);
  Cloned cloned{function, argument};
  const int child = SLALOM_REAL(clone)(run_cloned, stack, flags, &cloned, parents, local, childs);
  return child > 0 ? runtime().note_child(child) : child;
}
