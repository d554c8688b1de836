#include "preload/signals/system_signals.h"

#include <errno.h>
#include <unistd.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constinit siginfo_t last_infos[kSignals + 1] = {};  // of the last signal of each number from outside

constinit uint64_t own_fault_handlers = 0;  // faults that the program handles or ignores itself

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
  runtime().note_handler();
}

// The handler that the kernel calls in place of the program's. It can run in any thread, which may not have
// its turn; so it only notes the signal. It handles at once signals that the thread has caused itself
// (SIGPIPE) and those of timers that are not controlled.
void on_outside_signal(int signal, siginfo_t* info, void* context) {
  const bool own = info->si_code <= 0 && info->si_pid == raw_syscall(SYS_getpid);
  if (runtime().executes() && !own && info->si_code != SI_TIMER && info->si_code != SI_KERNEL) {
    last_infos[signal] = *info;
    return runtime().note_outside_signal(signal);
  }
  const auto function = handler(signal).function;
  if (function == nullptr) return;
  if (handler(signal).flags & SA_SIGINFO)
    reinterpret_cast<void (*)(int, siginfo_t*, void*)>(reinterpret_cast<void*>(function))(signal, info,
                                                                                          context);
  else
    function(signal);
}

}  // namespace

int set_handler(int signal, const struct sigaction* action, struct sigaction* before) {
  if (!runtime().connected() || signal < 1 || signal > kSignals || is_fault(signal)) {
    if (action != nullptr && runtime().executes() && signal >= 1 && signal <= kSignals)
      own_fault_handlers |= bit(signal);
    return SLALOM_REAL(sigaction)(signal, action, before);
  }
  const bool handles = action != nullptr && action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
  if (handles) runtime().end_set_up();
  const Handler old = handler(signal);
  struct sigaction ours = {}, kernels = {};
  if (action != nullptr) ours = *action;
  if (handles) {
    ours.sa_sigaction = on_outside_signal;
    ours.sa_flags |= SA_SIGINFO;
  }
  if (action != nullptr && runtime().controls()) runtime().tell(OpKind::IrqTake, kHandlerObject, 1);
  know_handler(signal, action);  // before the system call, because the signal may come at once
  if (SLALOM_REAL(sigaction)(signal, action == nullptr ? nullptr : &ours, &kernels) != 0) {
    handler(signal) = old;
    return -1;
  }
  if (before == nullptr) return 0;
  *before = kernels;
  if (old.function == nullptr) return 0;
  before->sa_handler = old.function;
  before->sa_flags = (kernels.sa_flags & ~SA_SIGINFO) | (old.flags & SA_SIGINFO);
  return 0;
}

// The kernel holds a signal back while all threads block it. This function fetches it if a thread does not
// block it in the model, as during a call with a mask of its own.
void take_outside_signals() {
  Runtime& rt = runtime();
  uint64_t wanted = 0, pending = 0;
  for (uint32_t i = 0; i < rt.agent_count(); ++i)
    if (!rt.ended(i)) wanted |= ~rt.agent(i).blocked;
  raw_syscall(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof pending);
  for (pending &= wanted; pending != 0; pending &= pending - 1) {
    const uint64_t one = pending & -pending;
    const int signal = __builtin_ctzll(one) + 1;
    const timespec now{0, 0};
    if (handles(signal) && raw_syscall(SYS_rt_sigtimedwait, reinterpret_cast<long>(&one),
                                       reinterpret_cast<long>(&last_infos[signal]),
                                       reinterpret_cast<long>(&now), sizeof one) == signal)
      rt.note_outside_signal(signal);
  }
  for (uint64_t all = rt.fetch_outside_signals(); all != 0; all &= all - 1) {
    const int signal = __builtin_ctzll(all) + 1;
    const siginfo_t info = last_infos[signal];
    rt.note_uncontrolled(Uncontrolled::Signal);
    post(rt.process_signals(), kNoAgent, signal,
         {info.si_code, info.si_value, rt.number_of(info.si_pid), info.si_uid});
  }
}

void reset_handler(int signal) {
  const struct sigaction standard = {};
  set_handler(signal, &standard, nullptr);
}

uint64_t never_blocked() {
  // Not SIGABRT, which no fault raises.
  const uint64_t faults = bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP);
  return faults & ~own_fault_handlers;
}

int change_system_mask(int how, const uint64_t* bits, sigset_t* before) {
  uint64_t wanted = bits == nullptr ? 0 : *bits, was = 0;
  if (how != SIG_UNBLOCK) wanted &= ~never_blocked();
  const long result =
      raw_syscall(SYS_rt_sigprocmask, how, bits == nullptr ? 0 : reinterpret_cast<long>(&wanted),
                  reinterpret_cast<long>(&was), sizeof was);
  if (result != 0 || before == nullptr) return static_cast<int>(-result);
  was |= runtime().me().blocked & never_blocked();
  __builtin_memcpy(before, &was, sizeof was);
  return 0;
}

// Such a signal ends the process, stops it, or is ignored. A signal to the process may also wait for a thread
// that will take it.
void signal_unhandled(uint32_t agent, int signal, uint64_t pc, Cause cause) {
  struct sigaction now = {};
  if (stops(signal) && SLALOM_REAL(sigaction)(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL)
    runtime().fail(Ending::Kind::Crash, pc, "stopped by a signal, with nobody to let it go on");
  if (agent != kNoAgent) {
    SLALOM_REAL(pthread_kill)(runtime().agent(agent).thread, signal);
    return;
  }
  const auto process = static_cast<pid_t>(raw_syscall(SYS_getpid));
  const siginfo_t info = info_of(signal, cause);
  if (cause.code >= 0)  // only the kernel may give such a cause
    SLALOM_REAL(kill)(process, signal);
  else
    raw_syscall(SYS_rt_sigqueueinfo, process, signal, reinterpret_cast<long>(&info));
}

int signal_another(pid_t pid, int signal, uint64_t, Cause cause) {
  pid = runtime().real_process(pid);
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
