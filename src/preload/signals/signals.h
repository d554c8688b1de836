// Signals that the program sends to itself: the interface for their sources (timers, kill).
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstdint>

#include "preload/runtime/handlers.h"

namespace slalom::preload {

// The facts about a signal that its handler receives.
struct Cause {
  static constexpr pid_t kOwn = -1;  // the program itself

  int code = SI_USER;
  sigval value = {};
  pid_t pid = kOwn;
  uid_t uid = 0;  // if pid is not kOwn
};

bool handles(int signal);  // whether the program has a handler for it that the runtime controls
// Sends the signal to the process, as a whole operation. The search chooses among the threads that do not
// block it.
void signal_process(int signal, uint64_t pc, Cause cause = {});
// As sigqueue and pthread_sigqueue, with any cause. Return 0, or -1 with errno.
int queue_signal(pid_t pid, int signal, uint64_t pc, Cause cause);
int queue_signal_to(uint32_t index, int signal, uint64_t pc, Cause cause);

// Sets a signal mask for the duration of one call, such as ppoll. nullptr changes nothing.
class MaskDuringCall {
 public:
  explicit MaskDuringCall(const sigset_t* mask);
  ~MaskDuringCall();
  MaskDuringCall(const MaskDuringCall&) = delete;
  MaskDuringCall& operator=(const MaskDuringCall&) = delete;

 private:
  uint64_t before_;
};

}  // namespace slalom::preload
