// What the system does about signals, as far as the model of them (preload/signals/signals.cc) leaves it to
// do: it knows handlers and masks, and takes what nobody handles.
//
// Two ways: an execution with a process of its own asks the kernel (preload/signals/system_signals.cc); one
// inside a test's process (check/signals.cc) must not touch what is the process's, and does it itself.
#pragma once

#include "preload/signals/signals.h"

namespace slalom::preload {

inline constexpr int kSignals = 64;

struct Handler {
  void (*function)(int) = nullptr;  // null: none that is controlled
  uint64_t mask = 0;
  int flags = 0;
};
Handler& handler(int signal);

inline uint64_t bit(int signal) {
  return uint64_t{1} << (signal - 1);
}
// Signal numbers as the kernel's set has them: bit 0 is signal 1.
uint64_t bits_of(const sigset_t* set);
// Does the system stop the program for it, unless told otherwise? Nothing would let it go on.
inline bool stops(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}
siginfo_t info_of(int signal, Cause cause);
// Adds a signal to those that are `pending` for the agent. Only signals for real time queue.
void post(uint64_t& pending, uint32_t agent, int signal, Cause cause);
// The oldest of that number leaves those that are pending.
Cause take_pending(uint64_t& pending, uint32_t agent, int signal);
void forget_sent_signals();  // of all

// 0, or -1 and errno: as sigaction().
int set_handler(int signal, const struct sigaction* action, struct sigaction* before);
void reset_handler(int signal);  // to what the system does
// Signals of faults that are to reach slalom's handler even if the program blocks them: the kernel would end
// the process, and no report would say where. Without those for which the program has a handler.
uint64_t never_blocked();
// Of the running agent; the model is told by the caller. An errno value.
int change_system_mask(int how, const uint64_t* bits, sigset_t* before);
// No handler is there for the signal that was sent to the agent, which does not block it; or, with kNobody,
// to the process.
void signal_unhandled(uint32_t agent, int signal, uint64_t pc, Cause cause);
// Not to this program: 0, or -1 and errno.
int signal_another(pid_t pid, int signal, uint64_t pc, Cause cause);
// To a thread of this process that is not controlled. An errno value.
int signal_foreign(pthread_t thread, int signal, uint64_t pc, Cause cause);

}  // namespace slalom::preload
