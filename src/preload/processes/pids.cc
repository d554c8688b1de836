// Process and thread numbers that are the same in each execution: those of the program, its threads and the
// processes that it starts. The kernel has other numbers, so calls that take or return one translate it. A
// program that a child executes sees only the real ones.
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

extern "C" int pidfd_open(pid_t, unsigned) noexcept;  // sys/pidfd.h lacks the C linkage

namespace slalom::preload {

int Runtime::note_child(int real) {
  const uint32_t index = child_count_++;
  if (index >= kMostChildren) return real;
  children_[index] = real;
  return kFirstChild + static_cast<int>(index);
}

// The child keeps all locks that other agents hold at the fork, and sees their half-done work. So the order
// of the fork and each of their operations matters.
void Runtime::pass_fork(uint64_t pc) {
  forks_ = true;  // the fork may be a system call that look_for_forks() could not find
  arrive(OpKind::Spawn, kForkObject, pc);
  tell(OpKind::Spawn, kForkObject);
  retire();
}

void Runtime::pass_prepared_fork() {
  if (controls()) pass_fork(me().forks_at);
}

// Gives the child the number by which its parent will know it, whichever of the two runs first.
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
  // The program's parent is a process of slalom, which it must not reach.
  return number == kPid - 1 ? INT32_MAX : number;
}

// Finds the latest child with this number, because the kernel reuses numbers.
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
  // The first thread has the number of its process.
  return thread == raw_syscall(SYS_getpid) ? getpid() : thread;
}

// The program leads a process group of its own, in its parent's session.
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
