#include "preload/system_signals.h"

#include <errno.h>
#include <unistd.h>

#include "preload/raw.h"
#include "preload/runtime.h"

namespace slalom::preload {
namespace {

bool is_fault(int signal) {
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    if (signal == fault) return true;
  return false;
}

void know_handler(int signal, const struct sigaction* action) {
  if (action == nullptr || signal < 1 || signal > kSignals || is_fault(signal)) return;
  handler(signal) = {};
  if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) return;
  handler(signal) = {action->sa_handler, bits_of(&action->sa_mask), action->sa_flags};
}

}  // namespace

int set_handler(int signal, const struct sigaction* action, struct sigaction* before) {
  const int result = SLALOM_REAL(sigaction)(signal, action, before);
  if (result == 0 && runtime().connected()) know_handler(signal, action);
  return result;
}

void reset_handler(int signal) {
  const struct sigaction standard = {};
  set_handler(signal, &standard, nullptr);
}

int change_system_mask(int how, const uint64_t* bits, sigset_t* before) {
  return static_cast<int>(-raw_syscall(SYS_rt_sigprocmask, how, reinterpret_cast<long>(bits),
                                       reinterpret_cast<long>(before), sizeof *bits));
}

// It ends the process, stops it, or is ignored; one to the process may also wait for who will take it.
void signal_unhandled(uint32_t agent, int signal, uint64_t pc, Cause cause) {
  struct sigaction now = {};
  if (stops(signal) && SLALOM_REAL(sigaction)(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    runtime().fail(Ending::Kind::Crash, pc, "stopped by a signal, with nobody to let it go on");
  if (agent != kNobody) {
    SLALOM_REAL(pthread_kill)(runtime().agent(agent).thread, signal);
    return;
  }
  const auto process = static_cast<pid_t>(raw_syscall(SYS_getpid));
  const siginfo_t info = info_of(signal, cause);
  if (cause.code >= 0)  // such a cause is the kernel's own to give
    SLALOM_REAL(kill)(process, signal);
  else
    raw_syscall(SYS_rt_sigqueueinfo, process, signal, reinterpret_cast<long>(&info));
}

int signal_another(pid_t pid, int signal, uint64_t, Cause cause) {
  if (cause.code == SI_USER) return SLALOM_REAL(kill)(pid, signal);
  const siginfo_t info = info_of(signal, cause);
  const long result = raw_syscall(SYS_rt_sigqueueinfo, pid, signal, reinterpret_cast<long>(&info));
  if (result != 0) errno = static_cast<int>(-result);
  return result == 0 ? 0 : -1;
}

int signal_foreign(pthread_t thread, int signal, uint64_t, Cause cause) {
  return cause.code == SI_TKILL ? SLALOM_REAL(pthread_kill)(thread, signal)
                                : SLALOM_REAL(pthread_sigqueue)(thread, signal, cause.value);
}

}  // namespace slalom::preload
