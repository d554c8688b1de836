// The system's part of signal handling, for executions inside a test's process. Handlers and masks that a
// body sets belong to its execution. A signal that would end the program ends the execution. No signal leaves
// the process.
#include "check/signals.h"

#include <errno.h>
#include <stdio.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"
#include "preload/signals/system_signals.h"

namespace slalom::checking {
namespace {

using preload::handler;
using preload::Handler;
using preload::kSignals;

// The process's state when the check begins.
constinit Handler of_process[kSignals + 1] = {};
constinit uint64_t ignored_by_process = 0;
constinit uint64_t blocked_by_process = 0;

constinit uint64_t ignored = 0;  // signals set to SIG_IGN in this execution
constinit bool changed = false;  // whether handlers differ from the process's

bool is_ignored(int signal) {
  for (const int harmless : {SIGCHLD, SIGURG, SIGWINCH, SIGCONT})
    if (signal == harmless) return true;
  return (ignored & preload::bit(signal)) != 0;
}

// A signal that every thread blocks waits for the first thread that does not block it.
bool all_block(int signal) {
  preload::Runtime& rt = preload::runtime();
  for (uint32_t i = 0; i < rt.agent_count(); ++i)
    if (!rt.ended(i) && (rt.agent(i).blocked & preload::bit(signal)) == 0) return false;
  return true;
}

[[noreturn]] void fail_for(uint64_t pc, const char* format, const char* name) {
  char text[120];
  snprintf(text, sizeof text, format, name == nullptr ? "?" : name);
  preload::runtime().fail(preload::Ending::Kind::Crash, pc, text);
}

void adopt(int signal, const struct sigaction& action) {
  ignored &= ~preload::bit(signal);
  handler(signal) = {};
  if (action.sa_handler == SIG_IGN) ignored |= preload::bit(signal);
  if (action.sa_handler == SIG_IGN || action.sa_handler == SIG_DFL) return;
  handler(signal) = {action.sa_handler, preload::bits_of(&action.sa_mask), action.sa_flags};
}

}  // namespace

void adopt_signals() {
  struct sigaction action = {};
  sigset_t mask;
  ignored = 0;
  for (int signal = 1; signal <= kSignals; ++signal) {
    if (sigaction(signal, nullptr, &action) == 0)
      adopt(signal, action);
    else
      handler(signal) = {};  // libc reserves two signals for itself
    of_process[signal] = handler(signal);
  }
  ignored_by_process = ignored;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  blocked_by_process = preload::bits_of(&mask);
}

void begin_signals() {
  preload::forget_sent_signals();
  preload::runtime().agent(0).blocked = blocked_by_process;
  if (!changed) return;
  changed = false;
  for (int signal = 1; signal <= kSignals; ++signal) handler(signal) = of_process[signal];
  ignored = ignored_by_process;
}

}  // namespace slalom::checking

namespace slalom::preload {

using namespace checking;

int set_handler(int signal, const struct sigaction* action, struct sigaction* before) {
  if (!runtime().controls()) return SLALOM_REAL(sigaction)(signal, action, before);
  const bool fixed = signal == SIGKILL || signal == SIGSTOP;
  if (signal < 1 || signal > kSignals || (fixed && action != nullptr)) return errno = EINVAL, -1;
  if (before != nullptr) {
    const Handler& now = handler(signal);
    *before = {};
    before->sa_handler = now.function != nullptr ? now.function : ignored & bit(signal) ? SIG_IGN : SIG_DFL;
    before->sa_flags = now.flags;
    memcpy(&before->sa_mask, &now.mask, sizeof now.mask);
  }
  if (action == nullptr) return 0;
  changed = true;
  adopt(signal, *action);
  return 0;
}

void reset_handler(int signal) {
  changed = true;
  handler(signal) = {};
}

int change_system_mask(int how, const uint64_t* bits, sigset_t* before) {
  if (before != nullptr) {
    sigemptyset(before);
    memcpy(before, &runtime().me().blocked, sizeof *bits);
  }
  return bits == nullptr || how == SIG_BLOCK || how == SIG_UNBLOCK || how == SIG_SETMASK ? 0 : EINVAL;
}

void signal_unhandled(uint32_t agent, int signal, uint64_t pc, Cause cause) {
  if (agent == kNoAgent && all_block(signal))
    return post(runtime().process_signals(), kNoAgent, signal, cause);
  if (is_ignored(signal)) return;
  fail_for(pc, preload::stops(signal) ? "stopped by signal %s" : "killed by signal %s", sigabbrev_np(signal));
}

int signal_another(pid_t, int signal, uint64_t pc, Cause) {
  fail_for(pc, "the body sends %s to another process, which slalom::check does not do",
           signal == 0 ? "a signal" : sigabbrev_np(signal));
}

void take_outside_signals() {}  // the process receives these itself

int signal_foreign(pthread_t, int signal, uint64_t pc, Cause) {
  fail_for(pc, "the body sends %s to a thread that is not its own, which slalom::check does not do",
           signal == 0 ? "a signal" : sigabbrev_np(signal));
}

}  // namespace slalom::preload
