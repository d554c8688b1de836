// Calls that wait in the kernel for something other than descriptors. The search does the waiting: it makes
// the call in a non-waiting form once the kernel says that the call need not wait.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "preload/runtime/runtime.h"

namespace slalom::preload {

struct WaitingCall {
  OpKind op;  // SemWait or SemPost
  uint64_t object;
  uint64_t pc;
  uint64_t deadline = kNever;
  OnSignal on_signal = OnSignal::EndsOrRestarts;
  bool cancels = true;  // whether it is a cancellation point
  bool outside = false;
  int late = ETIMEDOUT;  // errno if the deadline passes
  int busy = EAGAIN;     // errno of the non-waiting form if the call would wait after all
  Need need = Need::Kernel;
  uint32_t count = 0;  // number of descriptors, if need is Need::Descriptors
};

// Waits for the agent's turn and for `wait`, if it is not nullptr. Returns false with errno if the wait
// failed.
bool arrive_at(const WaitingCall& how, const void* wait);

// Does a whole call: makes `call` at the agent's turn and returns its result.
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

// The key of such a lock for hold_read(), with which reports of deadlocks name its holder.
inline const void* as_lock(uint64_t object) {
  return reinterpret_cast<const void*>(object);
}

// Numbers kernel objects, identified by (a, b), from 1 in the order of first use. The numbers are the same in
// every execution with the same schedule. of() returns 0 if there are too many.
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

// Kernel objects that an execution may leave behind and that the next one would find. The process that forks
// the executions removes them (preload/processes/left_behind.cc).
void prepare_left_behind();
void note_left_behind(char kind, int id);  // System V: 'm', 's' or 'q'
void note_left_behind(const char* queue);  // a POSIX queue, by name
void remove_left_behind();
bool is_left_behind(uint64_t address);  // whether the table's own memory begins there

// Returns whether the file of the descriptor is locked through it (preload/io/file_locks.cc). Such a
// descriptor must be closed by close_locked().
bool has_lock(int descriptor);
int close_locked(int descriptor, uint64_t pc);

bool any_stream_locked();  // with flockfile() (preload/io/stream_locks.cc)

// Opening of named pipes (preload/io/fifos.cc). `folder` and `path` are as for openat().
bool is_fifo(int folder, const char* path);
FILE* open_fifo_stream(const char* path, const char* mode, uint64_t pc);
int open_fifo(int folder, const char* path, int flags, uint64_t pc);

}  // namespace slalom::preload
