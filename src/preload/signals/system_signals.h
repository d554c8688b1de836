// The system's part of signal handling, as far as the model (preload/signals/signals.cc) leaves it to the
// system: it keeps handlers and masks, and takes signals without a handler.
//
// There are two implementations. An execution with a process of its own asks the kernel
// (preload/signals/system_signals.cc). An execution inside a test's process must not change the state of that
// process, so check/signals.cc does the work itself.
#pragma once

#include "preload/signals/signals.h"

namespace slalom::preload {

inline constexpr int kSignals = 64;

struct Handler {
  void (*function)(int) = nullptr;  // nullptr if there is none that the runtime controls
  uint64_t mask = 0;
  int flags = 0;
};
Handler& handler(int signal);

inline uint64_t bit(int signal) {
  return uint64_t{1} << (signal - 1);
}
// Converts to the kernel's representation: bit 0 is signal 1.
uint64_t bits_of(const sigset_t* set);
// Returns whether the signal stops the program by default. Nothing would resume it.
inline bool stops(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}
siginfo_t info_of(int signal, Cause cause);
// Adds a signal to the agent's `pending` ones. Only real-time signals queue.
void post(uint64_t& pending, uint32_t agent, int signal, Cause cause);
// Removes the oldest pending signal of this number and returns its cause.
Cause take_pending(uint64_t& pending, uint32_t agent, int signal);
void forget_sent_signals();  // of all agents

// As sigaction(): returns 0, or -1 with errno.
int set_handler(int signal, const struct sigaction* action, struct sigaction* before);
void reset_handler(int signal);  // to the default action
// Fault signals that must reach slalom's handler even if the program blocks them; otherwise the kernel would
// end the process, and no report would name the place. Excludes faults for which the program has a handler.
uint64_t never_blocked();
// Changes the mask of the running agent in the system only; the caller updates the model. Returns an errno
// value.
int change_system_mask(int how, const uint64_t* bits, sigset_t* before);
// Handles a signal without a handler that was sent to an agent that does not block it, or to the process
// (kNoAgent).
void signal_unhandled(uint32_t agent, int signal, uint64_t pc, Cause cause);
// Signals another program. Returns 0, or -1 with errno.
int signal_another(pid_t pid, int signal, uint64_t pc, Cause cause);
// Signals a thread of this process that is not controlled. Returns an errno value.
int signal_foreign(pthread_t thread, int signal, uint64_t pc, Cause cause);

}  // namespace slalom::preload
