// Numbers of processes and threads that are the same in each execution: the program's own, its threads' and
// those of the processes that it starts. The kernel has others: calls that take or give such a number
// translate it. A program that a child executes knows only the real ones.
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

extern "C" int pidfd_open(pid_t, unsigned) noexcept;  // sys/pidfd.h forgets to say that it is C

namespace slalom::preload {

int Runtime::note_child(int real) {
  const uint32_t index = child_count_++;
  if (index >= kMostChildren) return real;
  children_[index] = real;
  return kFirstChild + static_cast<int>(index);
}

// What others hold then, the child has for ever, and what they have half done it finds so: its order with
// every operation of theirs counts.
void Runtime::pass_fork(uint64_t pc) {
  forks_ = true;  // it may be a system call that nobody has foreseen
  arrive(OpKind::Spawn, kForkObject, pc);
  tell(OpKind::Spawn, kForkObject);
  retire();
}

void Runtime::pass_prepared_fork() {
  if (controls()) pass_fork(me().forks_at);
}

// It gets the number that its parent will know it by, whichever of the two runs first.
void Runtime::become_child() {
  const auto real = static_cast<int>(raw_syscall(SYS_getpid));
  const int number = note_child(real);
  own_number_ = number == real ? 0 : number;
  leave();
}

int Runtime::real_process(int number) const {
  const int sign = number < 0 ? -1 : 1;
  const auto child = static_cast<uint32_t>(sign * number - kFirstChild);
  if (child < child_count_ && child < kMostChildren) return sign * children_[child];
  if (process_ == 0) return number;
  if (sign * number == kPid) return sign * process_;
  return number == kPid - 1 ? INT32_MAX : number;  // its parent: slalom's, and nobody's business
}

// The latest that had it: the kernel gives numbers again.
int Runtime::number_of(int real) const {
  if (process_ != 0 && real == process_) return kPid;
  for (uint32_t i = child_count_ < kMostChildren ? child_count_ : kMostChildren; i-- > 0;)
    if (children_[i] == real) return kFirstChild + static_cast<int>(i);
  return real;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT pid_t getpid() noexcept {
  if (runtime().controls()) return kPid;
  const int number = runtime().own_number();
  return number != 0 ? number : static_cast<pid_t>(raw_syscall(SYS_getpid));
}
SLALOM_EXPORT pid_t getppid() noexcept {
  if (runtime().controls()) return kPid - 1;
  return runtime().number_of(static_cast<pid_t>(raw_syscall(SYS_getppid)));
}
SLALOM_EXPORT pid_t gettid() noexcept {
  if (runtime().controls()) return kPid + static_cast<pid_t>(runtime().self());
  const auto thread = static_cast<pid_t>(raw_syscall(SYS_gettid));
  return thread == raw_syscall(SYS_getpid) ? getpid() : thread;  // the first thread has its process's
}

// It leads a group of its own, in the session of whoever started it.
SLALOM_EXPORT pid_t getpgid(pid_t pid) noexcept {
  const bool own = runtime().controls() && (pid == 0 || pid == kPid);
  return own ? kPid : runtime().number_of(SLALOM_REAL(getpgid)(runtime().real_process(pid)));
}
SLALOM_EXPORT pid_t getpgrp() noexcept {
  return getpgid(0);
}
SLALOM_EXPORT int setpgid(pid_t pid, pid_t group) noexcept {
  return SLALOM_REAL(setpgid)(runtime().real_process(pid), runtime().real_process(group));
}
SLALOM_EXPORT pid_t getsid(pid_t pid) noexcept {
  const bool own = runtime().controls() && (pid == 0 || pid == kPid);
  return own ? kPid - 1 : runtime().number_of(SLALOM_REAL(getsid)(runtime().real_process(pid)));
}
SLALOM_EXPORT pid_t setsid() noexcept {
  return runtime().number_of(SLALOM_REAL(setsid)());
}
SLALOM_EXPORT int pidfd_open(pid_t pid, unsigned flags) noexcept {
  runtime().begin_executions_here();
  return SLALOM_REAL(pidfd_open)(runtime().real_process(pid), flags);
}
