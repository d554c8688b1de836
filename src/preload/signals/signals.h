// Signals that the program sends to itself, for those who send some: timers, kill.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstdint>

#include "preload/runtime/handlers.h"

namespace slalom::preload {

// What a handler is told about a signal.
struct Cause {
  static constexpr pid_t kOwn = -1;  // the program itself

  int code = SI_USER;
  sigval value = {};
  pid_t pid = kOwn;
  uid_t uid = 0;  // of another one than kOwn
};

bool handles(int signal);  // the program has a handler for it, that is controlled
// A whole operation: the signal is sent to the process. Which of the threads that do not block it takes it,
// is a choice of the search.
void signal_process(int signal, uint64_t pc, Cause cause = {});
// As sigqueue and pthread_sigqueue, whatever the cause: 0, or -1 and errno.
int queue_signal(pid_t pid, int signal, uint64_t pc, Cause cause);
int queue_signal_to(uint32_t index, int signal, uint64_t pc, Cause cause);

// A mask of signals that holds during one call, as for ppoll; null: none.
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
