// Signals that the program sends to itself: by kill and pthread_kill, and by its timers. A handler runs in
// the thread that the signal was sent to, before that thread's next operation; since the sender's operation
// may come anywhere between two of the thread's, so may the handler. Threads that wait for signals (sigwait
// and its kin, pause, sigsuspend) wait for these.
//
// What a handler does to the call in which its thread waits is as signal(7) says: it ends with EINTR, always
// or without SA_RESTART, or goes on; a wait on a condition variable ends, which it may at any time. Not
// controlled: signals from outside, and those of faults.
#include "preload/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "preload/clocks.h"
#include "preload/raw.h"
#include "preload/runtime.h"

namespace slalom::preload {
namespace {

constexpr int kSignals = 64;

struct Handler {
  void (*function)(int);  // null: none that is controlled
  void (*long_function)(int, siginfo_t*, void*);
  uint64_t mask;
  int flags;
};
constinit Handler handlers[kSignals + 1] = {};

uint64_t bit(int signal) {
  return uint64_t{1} << (signal - 1);
}

// Signal numbers as the kernel's set has them: bit 0 is signal 1.
uint64_t bits_of(const sigset_t* set) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, set, sizeof bits);
  return bits;
}

bool is_fault(int signal) {
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    if (signal == fault) return true;
  return false;
}

void know_handler(int signal, const struct sigaction* action) {
  if (action == nullptr || signal < 1 || signal > kSignals || is_fault(signal)) return;
  Handler& handler = handlers[signal];
  handler = {};
  if (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN) return;
  if (action->sa_flags & SA_SIGINFO)
    handler.long_function = action->sa_sigaction;
  else
    handler.function = action->sa_handler;
  handler.mask = bits_of(&action->sa_mask);
  handler.flags = action->sa_flags;
}

void run_handler(int signal) {
  Runtime& rt = runtime();
  Agent& agent = rt.me();
  const Handler handler = handlers[signal];
  const uint64_t blocked = agent.blocked;
  agent.blocked |= handler.mask | (handler.flags & SA_NODEFER ? 0 : bit(signal));
  if (handler.flags & SA_RESETHAND) handlers[signal] = {};
  // What the handler does itself must not be mistaken for what it interrupts.
  const Agent before = agent;
  agent.relock = nullptr;
  agent.at_cancel_point = false;
  agent.on_signal = OnSignal::GoesOn;
  const int error = errno;
  rt.tell(OpKind::SemWait, kSignalObject, 1, signal, kNobody, sigabbrev_np(signal));
  rt.retire();
  if (handler.long_function != nullptr) {
    siginfo_t info = {};
    info.si_signo = signal;
    info.si_pid = getpid();
    handler.long_function(signal, &info, nullptr);
  } else if (handler.function != nullptr) {
    handler.function(signal);
  }
  errno = error;
  agent.relock = before.relock;
  agent.target = before.target;
  agent.on_signal = before.on_signal;
  agent.at_cancel_point = before.at_cancel_point;
  agent.blocked = blocked;
}

void send(uint32_t index, int signal, uint64_t pc) {
  Runtime& rt = runtime();
  rt.arrive(OpKind::SemPost, kSignalObject, pc);
  rt.tell(OpKind::SemPost, kSignalObject, 0, signal, index, sigabbrev_np(signal));
  rt.agent(index).arrived |= bit(signal);
  rt.retire();
  run_handlers();
}

int change_mask(int how, const sigset_t* set, sigset_t* before) {
  uint64_t bits = set == nullptr ? 0 : bits_of(set);
  const long result =
      raw_syscall(SYS_rt_sigprocmask, how, reinterpret_cast<long>(set == nullptr ? nullptr : &bits),
                  reinterpret_cast<long>(before), sizeof bits);
  if (result != 0) return static_cast<int>(-result);
  uint64_t& blocked = runtime().me().blocked;
  if (set != nullptr)
    blocked = how == SIG_BLOCK ? blocked | bits : how == SIG_UNBLOCK ? blocked & ~bits : bits;
  run_handlers();
  return 0;
}

// Until a handler has run.
int wait_for_handler(uint64_t pc) {
  Runtime& rt = runtime();
  rt.cancel_point(true);
  rt.arrive(OpKind::SemWait, kSignalObject, pc, Need::Handler);
  rt.cancel_point(false);
  return errno = EINTR, -1;
}

// 0: its time is over; -1: another signal's handler has run.
int wait_for(const sigset_t* set, uint64_t deadline, OnSignal how, uint64_t pc) {
  Runtime& rt = runtime();
  const uint64_t wanted = bits_of(set);
  rt.cancel_point(true);
  const Interruptible call(how);
  const bool in_time = rt.arrive(OpKind::SemWait, kSignalObject, pc, Need::Signal, &wanted, deadline);
  rt.cancel_point(false);
  if (call.ended()) return -1;
  int signal = 0;
  if (in_time) {
    for (uint64_t* sent : {&rt.me().signals, &rt.me().arrived, &rt.arrived()}) {
      if ((*sent & wanted) == 0) continue;
      signal = __builtin_ctzll(*sent & wanted) + 1;
      *sent &= ~bit(signal);
      break;
    }
    if (signal == 0) {
      const timespec now{0, 0};
      const long taken = raw_syscall(SYS_rt_sigtimedwait, reinterpret_cast<long>(set), 0,
                                     reinterpret_cast<long>(&now), sizeof(uint64_t));
      signal = taken > 0 ? static_cast<int>(taken) : 0;
    }
  }
  rt.tell(in_time ? OpKind::SemWait : OpKind::TimerFire, kSignalObject, 1);
  rt.retire(!in_time);
  return signal;
}

}  // namespace

bool handles(int signal) {
  return signal >= 1 && signal <= kSignals &&
         (handlers[signal].function != nullptr || handlers[signal].long_function != nullptr);
}

bool run_handlers() {
  Runtime& rt = runtime();
  Agent& agent = rt.me();
  bool restart = true;
  while (const uint64_t signals = rt.deliverable(agent)) {
    const int signal = __builtin_ctzll(signals) + 1;
    (agent.arrived & bit(signal) ? agent.arrived : rt.arrived()) &= ~bit(signal);
    restart = restart && (handlers[signal].flags & SA_RESTART) != 0;
    run_handler(signal);
  }
  return restart;
}

MaskDuringCall::MaskDuringCall(const sigset_t* mask) : before_(runtime().me().blocked) {
  if (mask != nullptr) runtime().me().blocked = bits_of(mask);
}
MaskDuringCall::~MaskDuringCall() {
  runtime().me().blocked = before_;
}

void signal_process(int signal, uint64_t pc) {
  Runtime& rt = runtime();
  uint32_t takers[kMostAgents];
  uint32_t count = 0;
  if (handles(signal))
    for (uint32_t i = 0; i < rt.agent_count(); ++i)
      if (!rt.ended(i) && (rt.agent(i).blocked & bit(signal)) == 0) takers[count++] = i;
  if (count == 0) {  // ends the process, or waits for who will take it
    rt.arrive(OpKind::SemPost, kSignalObject, pc);
    rt.tell(OpKind::SemPost, kSignalObject, 0, signal, kNobody, sigabbrev_np(signal));
    rt.retire();
    if (handles(signal))
      rt.arrived() |= bit(signal);
    else
      SLALOM_REAL(kill)(static_cast<pid_t>(raw_syscall(SYS_getpid)), signal);
    return;
  }
  send(takers[rt.ask(count)], signal, pc);
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  const int result = SLALOM_REAL(sigaction)(signal, action, before);
  if (result == 0 && runtime().connected()) know_handler(signal, action);
  return result;
}
SLALOM_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction action = {}, before = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}
SLALOM_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_sigmask)(how, set, before);
  return change_mask(how, set, before);
}
SLALOM_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(sigprocmask)(how, set, before);
  const int result = change_mask(how, set, before);
  if (result != 0) errno = result;
  return result == 0 ? 0 : -1;
}
SLALOM_EXPORT int pause() {
  if (!runtime().controls()) return SLALOM_REAL(pause)();
  const uint64_t pc = SLALOM_PLACE();
  runtime().pass(OpKind::GoOn, pc, false);  // a handler that runs before the call is none that it waits for
  return wait_for_handler(pc);
}
SLALOM_EXPORT int sigsuspend(const sigset_t* mask) {
  if (!runtime().controls()) return SLALOM_REAL(sigsuspend)(mask);
  const MaskDuringCall masked(mask);
  return wait_for_handler(SLALOM_PLACE());
}

SLALOM_EXPORT int sigwait(const sigset_t* set, int* signal) {
  if (!runtime().controls()) return SLALOM_REAL(sigwait)(set, signal);
  *signal = wait_for(set, kNever, OnSignal::GoesOn, SLALOM_PLACE());
  return 0;
}
SLALOM_EXPORT int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  if (!runtime().controls()) return SLALOM_REAL(sigwaitinfo)(set, info);
  const int signal = wait_for(set, kNever, OnSignal::Ends, SLALOM_PLACE());
  if (info != nullptr) info->si_signo = signal;
  if (signal < 0) errno = EINTR;
  return signal;
}
SLALOM_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  if (!runtime().controls()) return SLALOM_REAL(sigtimedwait)(set, info, limit);
  if (!valid(limit)) return errno = EINVAL, -1;
  const int signal = wait_for(set, after(*limit), OnSignal::Ends, SLALOM_PLACE());
  if (info != nullptr) info->si_signo = signal;
  if (signal <= 0) errno = signal == 0 ? EAGAIN : EINTR;
  return signal <= 0 ? -1 : signal;
}

SLALOM_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  const uint32_t index = runtime().controls() ? runtime().find(thread) : kNobody;
  if (index == kNobody || signal < 1 || signal > kSignals) return SLALOM_REAL(pthread_kill)(thread, signal);
  Runtime& rt = runtime();
  const uint64_t pc = SLALOM_PLACE();
  if (handles(signal)) {
    send(index, signal, pc);
    return 0;
  }
  if (rt.agent(index).need != Need::Signal) return SLALOM_REAL(pthread_kill)(thread, signal);
  rt.arrive(OpKind::SemPost, kSignalObject, pc);
  rt.tell(OpKind::SemPost, kSignalObject, 0);
  rt.agent(index).signals |= bit(signal);
  rt.retire();
  return 0;
}
SLALOM_EXPORT int raise(int signal) noexcept {
  if (!runtime().controls() || !handles(signal)) return SLALOM_REAL(raise)(signal);
  send(runtime().self(), signal, SLALOM_PLACE());
  return 0;
}
SLALOM_EXPORT int kill(pid_t pid, int signal) noexcept {
  Runtime& rt = runtime();
  if (!rt.controls()) return SLALOM_REAL(kill)(pid, signal);
  const bool ours = pid == getpid() || pid == 0;
  if (ours && signal >= 1 && signal <= kSignals) {
    signal_process(signal, SLALOM_PLACE());
    return 0;
  }
  return SLALOM_REAL(kill)(pid == getpid() ? static_cast<pid_t>(raw_syscall(SYS_getpid)) : pid, signal);
}
