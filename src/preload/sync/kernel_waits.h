// Calls that wait in the kernel, other than for descriptors: the wait is the search's, and the call itself is
// made in a form that does not wait, when the kernel says that it need not.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "preload/runtime/runtime.h"

namespace slalom::preload {

struct WaitingCall {
  OpKind op;  // SemWait, or SemPost
  uint64_t object;
  uint64_t pc;
  uint64_t deadline = kNever;
  OnSignal on_signal = OnSignal::EndsOrRestarts;
  bool cancels = true;  // it is a cancellation point
  bool outside = false;
  int late = ETIMEDOUT;  // what errno says when its time is over
  int busy = EAGAIN;     // what it says when the call would wait after all
  Need need = Need::Kernel;
  uint32_t count = 0;  // of descriptors, if these are the need
};

// Waits for the agent's turn. `wait`: for that as well; null: the call never waits. False: errno says why.
bool arrive_at(const WaitingCall& how, const void* wait);

// Does all of a call; `call` is made when it is the agent's turn, and gives what the function gives.
template <typename Call>
long wait_and_call(const WaitingCall& how, const void* wait, Call call) {
  for (;;) {
    if (!arrive_at(how, wait)) return -1;
    const long result = call();
    const int error = errno;
    const bool is_busy = result < 0 && error == how.busy;
    runtime().tell(is_busy ? OpKind::TryLock : how.op, how.object, is_busy ? 0 : 1);
    runtime().retire(result < 0);
    errno = error;
    if (!is_busy || wait == nullptr) return result;
  }
}

// Who has such a lock, for reports of deadlocks.
inline const void* as_lock(uint64_t object) {
  return reinterpret_cast<const void*>(object);
}

// A number for what the kernel calls (a, b), counted from 1 in the order of first use: the same in every
// execution with the same schedule. 0: there are too many.
class Numbers {
 public:
  uint32_t of(uint64_t a, uint64_t b) {
    for (uint32_t i = 0; i < count_; ++i)
      if (known_[i].a == a && known_[i].b == b) return i + 1;
    if (count_ == kMost) return 0;
    known_[count_] = {a, b};
    return ++count_;
  }

 private:
  static constexpr uint32_t kMost = 256;
  struct {
    uint64_t a, b;
  } known_[kMost] = {};
  uint32_t count_ = 0;
};

// What executions may leave behind in the kernel, and the next one would find: the process that forks them
// removes it (preload/processes/left_behind.cc).
void prepare_left_behind();
void note_left_behind(char kind, int id);  // 'm', 's', 'q': of System V
void note_left_behind(const char* queue);  // of POSIX, by its name
void remove_left_behind();
bool is_left_behind(uint64_t address);  // does its own memory begin there?

// Does the descriptor have a lock of its file (preload/io/file_locks.cc)? close_locked() closes it.
bool has_lock(int descriptor);
int close_locked(int descriptor, uint64_t pc);

bool any_stream_locked();  // by flockfile() (preload/io/stream_locks.cc)

// A named pipe (preload/io/fifos.cc): how it is opened, as openat().
bool is_fifo(int folder, const char* path);
FILE* open_fifo_stream(const char* path, const char* mode, uint64_t pc);
int open_fifo(int folder, const char* path, int flags, uint64_t pc);

}  // namespace slalom::preload
