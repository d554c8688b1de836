// System calls made through syscall(): futexes, on which C++20's waiting operations and std::future are built
// (preload/sync/futexes.h), and calls that libc has as functions which the runtime controls. Also fork(), and
// the number of processors, which a program could otherwise see differ from run to run.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/runtime/errors.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/signals.h"
#include "preload/sync/futexes.h"

extern "C" int pidfd_open(pid_t, unsigned) noexcept;  // sys/pidfd.h lacks the C linkage

namespace slalom::preload {
namespace {

// The kernel's own asynchronous input and output.
bool is_kernel_io(long number) {
  for (long call : {SYS_io_setup, SYS_io_submit, SYS_io_getevents, SYS_io_pgetevents, SYS_io_cancel,
                    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register})
    if (number == call) return true;
  return false;
}

uint32_t agent_of(pid_t thread) {  // kNoAgent if there is none or it has ended
  const auto index = static_cast<uint32_t>(thread - kPid);
  return index < runtime().agent_count() && !runtime().ended(index) ? index : kNoAgent;
}

bool sends_signal(long number) {
  for (long call : {SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
    if (number == call) return true;
  return false;
}

// Returns whether the call forks a process with memory of its own. Replaces vfork, as vfork() below does.
bool forks(long& number, const long (&a)[6]) {
  if (number == SYS_vfork) number = SYS_fork;
  if (number == SYS_clone) return (a[0] & CLONE_VM) == 0;
  return number == SYS_fork ||
         (number == SYS_clone3 && (*reinterpret_cast<const uint64_t*>(a[0]) & CLONE_VM) == 0);
}

// Does what the corresponding libc function does. Returns 0, or -1 with errno.
int send_signal(long number, const long (&a)[6], uint64_t pc) {
  const auto pid = static_cast<pid_t>(a[0]);
  const auto thread = static_cast<pid_t>(number == SYS_tkill ? a[0] : a[1]);
  if (number == SYS_kill) return kill(pid, static_cast<int>(a[1]));
  if (number == SYS_tkill) return tgkill(kPid, thread, static_cast<int>(a[1]));
  if (number == SYS_tgkill) return tgkill(pid, thread, static_cast<int>(a[2]));
  const bool to_thread = number == SYS_rt_tgsigqueueinfo;
  const auto* info = reinterpret_cast<const siginfo_t*>(to_thread ? a[3] : a[2]);
  if (info == nullptr) return errno = EFAULT, -1;
  // A process may pretend to be the kernel only to itself.
  const pid_t receiver = to_thread ? thread : pid;
  if ((info->si_code >= 0 || info->si_code == SI_TKILL) && receiver != gettid()) return errno = EPERM, -1;
  const Cause cause{info->si_code, info->si_value, info->si_pid, info->si_uid};
  if (!to_thread) return queue_signal(pid, static_cast<int>(a[1]), pc, cause);
  const uint32_t index = pid == kPid ? agent_of(thread) : kNoAgent;
  if (index == kNoAgent) return errno = ESRCH, -1;
  return queue_signal_to(index, static_cast<int>(a[2]), pc, cause);
}

// Makes the calls that the runtime controls under their libc names. Returns false for any other call.
// `result` is that of the libc function: -1 with errno on failure.
bool call_by_name(long number, const long (&a)[6], long& result) {
  const auto integer = [&](int i) { return static_cast<int>(a[i]); };
  const auto size = [&](int i) { return static_cast<size_t>(a[i]); };
  const auto at = [&]<typename T>(T*, int i) { return reinterpret_cast<T*>(a[i]); };
#define AT(type, i) at(static_cast<type*>(nullptr), i)
  switch (number) {
    case SYS_read:
      return result = read(integer(0), AT(void, 1), size(2)), true;
    case SYS_write:
      return result = write(integer(0), AT(void, 1), size(2)), true;
    case SYS_readv:
      return result = readv(integer(0), AT(iovec, 1), integer(2)), true;
    case SYS_writev:
      return result = writev(integer(0), AT(iovec, 1), integer(2)), true;
    case SYS_close:
      return result = close(integer(0)), true;
    case SYS_pipe:
      return result = pipe(AT(int, 0)), true;
    case SYS_pipe2:
      return result = pipe2(AT(int, 0), integer(1)), true;
    case SYS_dup:
      return result = dup(integer(0)), true;
    case SYS_dup2:
      return result = dup2(integer(0), integer(1)), true;
    case SYS_dup3:
      return result = dup3(integer(0), integer(1), integer(2)), true;
    case SYS_fcntl:
      return result = fcntl(integer(0), integer(1), a[2]), true;
    case SYS_flock:
      return result = flock(integer(0), integer(1)), true;
    case SYS_semop:
      return result = semop(integer(0), AT(sembuf, 1), size(2)), true;
    case SYS_semtimedop:
      return result = semtimedop(integer(0), AT(sembuf, 1), size(2), AT(timespec, 3)), true;
    case SYS_msgsnd:
      return result = msgsnd(integer(0), AT(void, 1), size(2), integer(3)), true;
    case SYS_msgrcv:
      return result = msgrcv(integer(0), AT(void, 1), size(2), a[3], integer(4)), true;
    case SYS_splice:
      return result = splice(integer(0), AT(off64_t, 1), integer(2), AT(off64_t, 3), size(4),
                             static_cast<unsigned>(a[5])),
             true;
    case SYS_tee:
      return result = tee(integer(0), integer(1), size(2), static_cast<unsigned>(a[3])), true;
    case SYS_vmsplice:
      return result = vmsplice(integer(0), AT(iovec, 1), size(2), static_cast<unsigned>(a[3])), true;
    case SYS_sendfile:
      return result = sendfile(integer(0), integer(1), AT(off_t, 2), size(3)), true;
    case SYS_eventfd2:
      return result = eventfd(static_cast<unsigned>(a[0]), integer(1)), true;
    case SYS_poll:
      return result = poll(AT(pollfd, 0), size(1), integer(2)), true;
    case SYS_epoll_create1:
      return result = epoll_create1(integer(0)), true;
    case SYS_epoll_ctl:
      return result = epoll_ctl(integer(0), integer(1), integer(2), AT(epoll_event, 3)), true;
    case SYS_epoll_wait:
      return result = epoll_wait(integer(0), AT(epoll_event, 1), integer(2), integer(3)), true;
    case SYS_socket:
      return result = socket(integer(0), integer(1), integer(2)), true;
    case SYS_socketpair:
      return result = socketpair(integer(0), integer(1), integer(2), AT(int, 3)), true;
    case SYS_sendto:
      return result = sendto(integer(0), AT(void, 1), size(2), integer(3), AT(sockaddr, 4),
                             static_cast<socklen_t>(a[5])),
             true;
    case SYS_recvfrom:
      return result =
                 recvfrom(integer(0), AT(void, 1), size(2), integer(3), AT(sockaddr, 4), AT(socklen_t, 5)),
             true;
    case SYS_sendmsg:
      return result = sendmsg(integer(0), AT(msghdr, 1), integer(2)), true;
    case SYS_recvmsg:
      return result = recvmsg(integer(0), AT(msghdr, 1), integer(2)), true;
    case SYS_wait4:
      return result = wait4(integer(0), AT(int, 1), integer(2), AT(rusage, 3)), true;
    case SYS_getrandom:
      return result = getrandom(AT(void, 0), size(1), static_cast<unsigned>(a[2])), true;
    case SYS_sched_yield:
      return result = sched_yield(), true;
    case SYS_nanosleep:
      return result = nanosleep(AT(timespec, 0), AT(timespec, 1)), true;
    case SYS_gettimeofday:
      return result = gettimeofday(AT(timeval, 0), nullptr), true;
    case SYS_clock_gettime:
      return result = clock_gettime(integer(0), AT(timespec, 1)), true;
    case SYS_time:
      return result = time(AT(time_t, 0)), true;
    case SYS_times:
      return result = times(AT(tms, 0)), true;
    case SYS_getrusage:
      return result = getrusage(static_cast<__rusage_who>(a[0]), AT(rusage, 1)), true;
    case SYS_getpid:
      return result = getpid(), true;
    case SYS_gettid:
      return result = gettid(), true;
    case SYS_getpgrp:
      return result = getpgrp(), true;
    case SYS_getpgid:
      return result = getpgid(integer(0)), true;
    case SYS_getsid:
      return result = getsid(integer(0)), true;
    case SYS_setpgid:
      return result = setpgid(integer(0), integer(1)), true;
    case SYS_pidfd_open:
      return result = pidfd_open(integer(0), static_cast<unsigned>(a[1])), true;
    case SYS_exit_group:
      _exit(integer(0));
    default:
      return false;
  }
#undef AT
}

// Converts a kernel result to libc's: -1 with errno on failure.
long as_libc(long result) {
  if (result >= 0 || result <= -4096) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// The body of a check may not fork: its child would be a second test framework.
template <typename Fork>
pid_t make_fork(Fork fork, bool ours, bool prepared, void* from) {
  if (ours) runtime().end_set_up();  // executions cannot be forked from within libc's fork()
  if (ours && !runtime().connected()) runtime().misuse(runtime().place(from), "the body of the test forks");
  if (ours) {
    if (prepared)
      runtime().me().forks_at = runtime().place(from);
    else
      runtime().pass_fork(runtime().place(from));
    runtime().note_uncontrolled(Uncontrolled::Fork);
  }
  const pid_t child = fork();
  if (child == 0 && !ours) runtime().become_grandchild();
  // Otherwise the pthread_atfork() handler has done it.
  if (child == 0 && runtime().controls()) runtime().become_child();
  return ours && child > 0 ? runtime().note_child(child) : child;
}

}  // namespace

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT long syscall(long number, ...) noexcept {
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  long result = 0;
  const bool ours = runtime().controls();
  if (ours && number == SYS_futex)
    result = futex(a, SLALOM_PLACE());
  else if (!ours && number == SYS_kill)
    return kill(static_cast<pid_t>(a[0]), static_cast<int>(a[1]));
  else if (number == SYS_getppid)
    return getppid();
  else if (!ours && number == SYS_getpid)
    return getpid();
  else if (ours && sends_signal(number))
    return send_signal(number, a, SLALOM_PLACE());
  else if (ours && call_by_name(number, a, result))
    return result;
  else if (ours && forks(number, a))
    result = make_fork([&] { return static_cast<pid_t>(raw_syscall(number, a[0], a[1], a[2], a[3], a[4])); },
                       true, false, __builtin_return_address(0));
  else {
    if (ours && (number == SYS_clone || number == SYS_clone3))
      runtime().note_uncontrolled(Uncontrolled::ForeignThread);
    if (ours && (number == SYS_execve || number == SYS_execveat))
      runtime().note_uncontrolled(Uncontrolled::Program);
    if (ours && is_kernel_io(number)) runtime().note_uncontrolled(Uncontrolled::KernelIo);
    const auto make = [&] { return raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]); };
    if (!ours) return as_libc(make());
    // The subject of such a call is not known.
    return may_fail({CallId::syscall, {}, __builtin_return_address(0), __builtin_dwarf_cfa()}, -1,
                    [&] { return as_libc(make()); });
  }
  return as_libc(result);
}

// Signals a thread by the number that gettid() gave it. ESRCH if there is none.
SLALOM_EXPORT int tgkill(pid_t pid, pid_t thread, int signal) noexcept {
  if (!runtime().controls()) return static_cast<int>(raw_syscall(SYS_tgkill, pid, thread, signal));
  const uint32_t index = pid == kPid ? agent_of(thread) : kNoAgent;
  if (index == kNoAgent) return errno = ESRCH, -1;
  const int result = pthread_kill(runtime().agent(index).thread, signal);
  if (result != 0) errno = result;
  return result == 0 ? 0 : -1;
}

SLALOM_EXPORT pid_t fork() noexcept {
  return make_fork(SLALOM_REAL(fork), runtime().controls(), true, __builtin_return_address(0));
}
SLALOM_EXPORT pid_t _Fork() noexcept {
  return make_fork(SLALOM_REAL(_Fork), runtime().controls(), false, __builtin_return_address(0));
}
// A fork can replace a vfork, because the child of a vfork may only exec.
SLALOM_EXPORT pid_t vfork() noexcept {
  return make_fork(SLALOM_REAL(fork), runtime().controls(), true, __builtin_return_address(0));
}

// One core runs all threads, and the program must not see which. The number of processors should invite a
// program to use threads.
SLALOM_EXPORT int get_nprocs() noexcept {
  return runtime().connected() ? kProcessors : SLALOM_REAL(get_nprocs)();
}
SLALOM_EXPORT int get_nprocs_conf() noexcept {
  return runtime().connected() ? kProcessors : SLALOM_REAL(get_nprocs_conf)();
}
SLALOM_EXPORT long sysconf(int name) noexcept {
  if (runtime().connected() && (name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF))
    return kProcessors;
  return SLALOM_REAL(sysconf)(name);
}
SLALOM_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t* set) noexcept {
  if (!runtime().connected()) return SLALOM_REAL(sched_getaffinity)(pid, size, set);
  CPU_ZERO_S(size, set);
  for (int i = 0; i < kProcessors; ++i) CPU_SET_S(static_cast<size_t>(i), size, set);
  return 0;
}
SLALOM_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t* set) noexcept {
  return runtime().connected() ? 0 : SLALOM_REAL(sched_setaffinity)(pid, size, set);
}
SLALOM_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t* set) noexcept {
  if (!runtime().connected()) return SLALOM_REAL(pthread_getaffinity_np)(thread, size, set);
  return sched_getaffinity(0, size, set);
}
SLALOM_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t* set) noexcept {
  return runtime().connected() ? 0 : SLALOM_REAL(pthread_setaffinity_np)(thread, size, set);
}
// OpenMP derives its number of threads from it, if asked to (OMP_DYNAMIC).
SLALOM_EXPORT int getloadavg(double* loads, int count) noexcept {
  if (!runtime().connected()) return SLALOM_REAL(getloadavg)(loads, count);
  const int known = count < 3 ? count : 3;
  for (int i = 0; i < known; ++i) loads[i] = 0;
  return known;
}
SLALOM_EXPORT int sched_getcpu() noexcept {
  return runtime().connected() ? 0 : SLALOM_REAL(sched_getcpu)();
}
