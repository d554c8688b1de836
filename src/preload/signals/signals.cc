// Signals that the program sends to itself: by kill, sigqueue and pthread_kill, and by its timers. A handler
// runs in the thread that received the signal, before that thread's next operation. Since the sender's
// operation may come between any two of that thread's operations, so may the handler. Calls that wait for
// signals (preload/signals/signal_waits.cc) wait for these.
//
// signal(7) says what a handler does to the call in which its thread waits. The call ends with EINTR, always
// or only without SA_RESTART, or it goes on. A wait on a condition variable ends, which it may do at any
// time. A signal from outside counts as sent by the program, at the next operation after it came. Fault
// signals are not controlled. preload/signals/system_signals.h says what happens to signals without a
// handler.
#include "preload/signals/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "preload/runtime/clocks.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/system_signals.h"

namespace slalom::preload {
namespace {

constinit Handler handlers[kSignals + 1] = {};

// The causes of sent signals that no agent has taken yet, in the order of sending. If the table is full, a
// signal still arrives, as if from kill().
struct Sent {
  uint32_t agent;  // kNoAgent if sent to the whole process
  int signal;
  Cause cause;
};
constexpr uint32_t kMostSent = 256;
constinit Sent sent[kMostSent] = {};
constinit uint32_t sent_count = 0;

// Returns whether an interrupted call goes on.
bool run_handler(int signal, Cause cause) {
  Runtime& rt = runtime();
  Agent& agent = rt.me();
  const Handler handler = handlers[signal];
  if (handler.function == nullptr) {  // the handler was removed, or the signal was sent to the process
    signal_unhandled(rt.self(), signal, rt.slot(rt.self()).pc, cause);
    return true;
  }
  const uint64_t blocked = agent.blocked;
  agent.blocked |= handler.mask | (handler.flags & SA_NODEFER ? 0 : bit(signal));
  if (handler.flags & SA_RESETHAND) reset_handler(signal);
  // The handler's own operations must not be mistaken for the one that it interrupts.
  const Agent before = agent;
  agent.relock = nullptr;
  agent.at_cancel_point = false;
  agent.on_signal = OnSignal::GoesOn;
  const int error = errno;
  rt.tell(OpKind::SemWait, signals_object(rt.slot(rt.self())), 1, signal, kNoAgent, sigabbrev_np(signal));
  rt.retire();
  siginfo_t info = info_of(signal, cause);
  if (handler.flags & SA_SIGINFO) {
    ucontext_t context;
    getcontext(&context);
    context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(rt.slot(rt.self()).pc);
    __builtin_memcpy(&context.uc_sigmask, &blocked, sizeof blocked);
    reinterpret_cast<void (*)(int, siginfo_t*, void*)>(reinterpret_cast<void*>(handler.function))(
        signal, &info, &context);
  } else {
    handler.function(signal);
  }
  errno = error;
  agent.relock = before.relock;
  agent.target = before.target;
  agent.on_signal = before.on_signal;
  agent.at_cancel_point = before.at_cancel_point;
  agent.blocked = blocked;
  return (handler.flags & SA_RESTART) != 0;
}

// Sends a signal, at the sender's turn. Signals with a handler use the agent's signals object. If the agent
// blocks the signal, it may wait for it with sigwait, which uses the process's kSignalObject.
void send(uint32_t index, int signal, Cause cause) {
  Runtime& rt = runtime();
  rt.tell(OpKind::SemPost, signals_object(rt.slot(index)), 0, signal, kNoAgent, sigabbrev_np(signal));
  if (rt.agent(index).blocked & bit(signal)) rt.tell(OpKind::SemPost, kSignalObject, 0, signal);
  if (!rt.ended(index)) post(rt.agent(index).pending_signals, index, signal, cause);
  rt.may_stop_waiting(index);
  rt.retire();
  run_handlers();
}

int change_mask(int how, const sigset_t* set, sigset_t* before) {
  const uint64_t bits = set == nullptr ? 0 : bits_of(set);
  const int error = change_system_mask(how, set == nullptr ? nullptr : &bits, before);
  if (error != 0) return error;
  Runtime& rt = runtime();
  uint64_t& blocked = rt.me().blocked;
  // The mask decides which threads may take signals to the process.
  if (set != nullptr && rt.has_handlers()) rt.tell(OpKind::IrqTake, signals_object(rt.slot(rt.self())), 1);
  if (set != nullptr)
    blocked = (how == SIG_BLOCK     ? blocked | bits
               : how == SIG_UNBLOCK ? blocked & ~bits
                                    : bits) &
              ~(bit(SIGKILL) | bit(SIGSTOP));
  run_handlers();
  return 0;
}

// The receiver that a process id means. Ids that the program sees for itself, its threads and its parent must
// not reach a real process that happens to have the same number.
enum class Receiver { Us, None, Other };
Receiver receiver_of(pid_t pid) {
  Runtime& rt = runtime();
  const pid_t us = getpid();
  if (pid == 0 || pid == us || pid == -us || pid == -getpgrp()) return Receiver::Us;
  if (pid != getppid() && (pid < us || pid >= us + static_cast<pid_t>(rt.agent_count())))
    return Receiver::Other;
  return pid > us && !rt.ended(static_cast<uint32_t>(pid - us)) ? Receiver::Us : Receiver::None;
}

// Signals this process. Signal 0 only asks whether the process exists.
int signal_us(int signal, uint64_t pc, Cause cause) {
  if (signal < 0 || signal > kSignals) return errno = EINVAL, -1;
  if (signal != 0) signal_process(signal, pc, cause);
  return 0;
}

// Signals a thread. Returns an errno value.
int signal_thread(pthread_t thread, int signal, uint64_t pc, Cause cause) {
  Runtime& rt = runtime();
  const uint32_t index = rt.find(thread);
  if (index == kNoAgent) return signal_foreign(thread, signal, pc, cause);
  if (signal < 0 || signal > kSignals) return EINVAL;
  if (signal == 0) return 0;
  rt.arrive(OpKind::SemPost, signals_object(rt.slot(index)), pc);
  rt.tell(OpKind::CpuUse, kHandlerObject);
  if (handles(signal)) {
    send(index, signal, cause);
    return 0;
  }
  rt.tell(OpKind::SemPost, kSignalObject, 0, signal, kNoAgent, sigabbrev_np(signal));
  rt.retire();
  if (rt.ended(index)) return 0;
  Agent& agent = rt.agent(index);
  if (agent.need == Need::Signal)
    post(agent.awaited_signals, index, signal, cause);
  else if (agent.blocked & bit(signal))
    post(agent.pending_signals, index, signal, cause);
  else
    signal_unhandled(index, signal, pc, cause);
  return 0;
}

}  // namespace

bool handles(int signal) {
  return signal >= 1 && signal <= kSignals && handlers[signal].function != nullptr;
}

Handler& handler(int signal) {
  return handlers[signal];
}

uint64_t bits_of(const sigset_t* set) {
  uint64_t bits = 0;
  __builtin_memcpy(&bits, set, sizeof bits);
  return bits;
}

siginfo_t info_of(int signal, Cause cause) {
  siginfo_t info = {};
  info.si_signo = signal;
  info.si_code = cause.code;
  if (cause.code != SI_TIMER) {  // which uses these fields for other data
    info.si_pid = cause.pid == Cause::kOwn ? getpid() : cause.pid;
    info.si_uid = cause.pid == Cause::kOwn ? getuid() : cause.uid;
  }
  info.si_value = cause.value;
  return info;
}

void post(uint64_t& pending, uint32_t agent, int signal, Cause cause) {
  if (((pending & bit(signal)) == 0 || signal >= SIGRTMIN) && sent_count < kMostSent)
    sent[sent_count++] = {agent, signal, cause};
  pending |= bit(signal);
}

Cause take_pending(uint64_t& pending, uint32_t agent, int signal) {
  Cause cause;
  bool found = false;
  uint32_t kept = 0;
  pending &= ~bit(signal);
  for (uint32_t i = 0; i < sent_count; ++i) {
    const bool same = sent[i].agent == agent && sent[i].signal == signal;
    if (same && !found) {
      cause = sent[i].cause;
      found = true;
      continue;
    }
    if (same) pending |= bit(signal);
    sent[kept++] = sent[i];
  }
  sent_count = kept;
  return cause;
}

void forget_sent_signals() {
  sent_count = 0;
}

[[gnu::noinline]] bool run_handlers() {  // rare, while arrive() is hot
  Runtime& rt = runtime();
  Agent& agent = rt.me();
  bool restart = true;
  while (const uint64_t signals = rt.deliverable(agent)) {
    const int signal = __builtin_ctzll(signals) + 1;
    const bool own = (agent.pending_signals & bit(signal)) != 0;
    const Cause cause = own ? take_pending(agent.pending_signals, rt.self(), signal)
                            : take_pending(rt.process_signals(), kNoAgent, signal);
    restart = run_handler(signal, cause) && restart;
  }
  return restart;
}

MaskDuringCall::MaskDuringCall(const sigset_t* mask) : before_(runtime().me().blocked) {
  if (mask != nullptr) runtime().me().blocked = bits_of(mask);
}
MaskDuringCall::~MaskDuringCall() {
  runtime().me().blocked = before_;
}

void signal_process(int signal, uint64_t pc, Cause cause) {
  Runtime& rt = runtime();
  uint32_t takers[kMostAgents];
  uint32_t count = 0;
  rt.arrive(OpKind::SemPost, kSignalObject, pc);
  rt.tell(OpKind::CpuUse, kHandlerObject);
  for (uint32_t i = 0; handles(signal) && i < rt.agent_count(); ++i) {
    rt.tell(OpKind::CpuUse, agent_object(rt.slot(i)));  // depends on whether it has ended
    rt.tell(OpKind::CpuUse, signals_object(rt.slot(i)));
    if (!rt.ended(i) && (rt.agent(i).blocked & bit(signal)) == 0) takers[count++] = i;
  }
  if (count == 0) {  // ends the process, or waits for a thread that will take it
    rt.tell(OpKind::SemPost, kSignalObject, 0, signal, kNoAgent, sigabbrev_np(signal));
    for (uint32_t i = 0; i < rt.agent_count(); ++i)  // an agent takes it once it unblocks it
      if (!rt.ended(i)) rt.tell(OpKind::IrqTake, signals_object(rt.slot(i)));
    rt.retire();
    if (handles(signal)) return post(rt.process_signals(), kNoAgent, signal, cause);
    return signal_unhandled(kNoAgent, signal, pc, cause);
  }
  send(takers[rt.ask(count)], signal, cause);
}

int queue_signal(pid_t pid, int signal, uint64_t pc, Cause cause) {
  const Receiver receiver = receiver_of(pid);
  if (receiver == Receiver::Other && pid > 0) return signal_another(pid, signal, pc, cause);
  if (receiver != Receiver::Us || pid <= 0) return errno = ESRCH, -1;  // groups are not supported
  if (sent_count == kMostSent) return errno = EAGAIN, -1;
  return signal_us(signal, pc, cause);
}

int queue_signal_to(uint32_t index, int signal, uint64_t pc, Cause cause) {
  const int error = signal_thread(runtime().agent(index).thread, signal, pc, cause);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

SLALOM_EXPORT int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  return set_handler(signal, action, before);
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
SLALOM_EXPORT int sigpending(sigset_t* set) noexcept {
  const int result = SLALOM_REAL(sigpending)(set);
  if (result != 0 || !runtime().controls()) return result;
  const Agent& me = runtime().me();
  const uint64_t all =
      bits_of(set) | ((me.awaited_signals | me.pending_signals | runtime().process_signals()) & me.blocked);
  __builtin_memcpy(set, &all, sizeof all);
  return 0;
}
SLALOM_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_kill)(thread, signal);
  return signal_thread(thread, signal, SLALOM_PLACE(), {.code = SI_TKILL});
}
SLALOM_EXPORT int pthread_sigqueue(pthread_t thread, int signal, sigval value) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(pthread_sigqueue)(thread, signal, value);
  return signal_thread(thread, signal, SLALOM_PLACE(), {.code = SI_QUEUE, .value = value});
}
SLALOM_EXPORT int raise(int signal) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(raise)(signal);
  const int error = signal_thread(runtime().me().thread, signal, SLALOM_PLACE(), {.code = SI_TKILL});
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}
SLALOM_EXPORT int kill(pid_t pid, int signal) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(kill)(runtime().real_process(pid), signal);
  switch (receiver_of(pid)) {
    case Receiver::Us:
      return signal_us(signal, SLALOM_PLACE(), {});
    case Receiver::None:
      return errno = ESRCH, -1;
    case Receiver::Other:
      break;
  }
  return signal_another(pid, signal, SLALOM_PLACE(), {});
}
SLALOM_EXPORT int killpg(pid_t group, int signal) noexcept {
  if (group < 0) return errno = EINVAL, -1;
  return kill(-group, signal);
}
SLALOM_EXPORT int sigqueue(pid_t pid, int signal, const sigval value) noexcept {
  if (!runtime().controls()) return SLALOM_REAL(sigqueue)(runtime().real_process(pid), signal, value);
  return queue_signal(pid, signal, SLALOM_PLACE(), {.code = SI_QUEUE, .value = value});
}
