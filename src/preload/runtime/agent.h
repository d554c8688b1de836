// Agent: what the runtime knows about a controlled thread and does not share with slalom (the shared part is
// Slot): what the thread waits for, how signals and cancellation affect that wait, and how the thread was
// started. Not for decisions or reports.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "preload/protocol.h"

namespace slalom::preload {

inline constexpr uint64_t kNever = UINT64_MAX;

// What must hold before an operation can be done.
enum class Need : uint8_t {
  Nothing,
  Mutex,
  Spin,
  ReadLock,
  WriteLock,
  Semaphore,
  AgentEnd,
  Once,
  Descriptors,  // one of several descriptors is ready
  Signal,       // one signal of a set is pending
  Handler,      // a signal handler has run
  Child,        // a child process has ended
  Timer,        // the deadline has come
  Sleep,        // nothing, but a handler ends the wait
  PiLock,       // a futex that is a lock and holds its owner's thread id
  OwnedLock,    // a lock word with its owner's thread id that is no futex
  Kernel,       // the kernel agrees (KernelWait)
  Wakeup,
};

// How a signal handler that runs during a waiting call affects it.
enum class OnSignal : uint8_t {
  GoesOn,
  Ends,           // with EINTR
  EndsOrRestarts  // depending on the handler's SA_RESTART
};

// The child process to wait for, as arguments of waitid().
struct ChildWait {
  int kind, id, options;
};

// A wait whose condition only the kernel or libc knows. can_go_on() changes nothing. Waiting calls derive
// from it.
struct KernelWait {
  bool (*can_go_on)(const KernelWait&);
};

// The position of an agent when it last began an operation in code that is one step to the search: return
// addresses from the outermost function of that code inward.
struct AtomicCall {
  static constexpr uint32_t kMostFrames = 8;
  uint64_t stack = 0;  // stack of the outermost frame
  uint32_t function = 0, frame_count = 0;
  uint64_t frames[kMostFrames] = {};  // program counters
};

struct Agent {
  pthread_t thread{};
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  const void* object = nullptr;       // the object of `need`
  void* signal_stack = nullptr;       // stack for signal handlers
  size_t guard = 0;                   // size of the guard area that the program requested
  uint64_t team_entry = 0;            // entry of the threads that it starts for an OpenMP team
  const void* base = nullptr;         // base of the stack of the program's own functions
  pthread_mutex_t* relock = nullptr;  // of a wait on a condition variable: the mutex to lock when woken
  uint64_t deadline = kNever;         // of a wait with a time limit, in virtual nanoseconds
  struct LocalDestructor* destructors = nullptr;  // of C++ thread_local objects
  uint64_t awaited_signals = 0;                   // signals sent to it while it waited for them
  uint64_t pending_signals = 0;                   // signals sent to it that have handlers
  uint64_t blocked = 0;                           // signal mask
  uint32_t count = 0;                             // number of descriptors at `object`
  uint32_t bits = 0;                              // bit set of a wait on a futex
  uint32_t target = kNoAgent;                     // the joined agent
  uint32_t spawned = 0;
  uint32_t spurious = 0;  // spurious wake-ups so far
  uint32_t calls = 0;     // calls so far that could fail (preload/runtime/errors.h)
  uint32_t repeated = 0;  // index of the next repeated error, plus 1; 0 means not searched yet
  AtomicCall atomic_call;
  uint64_t forks_at = 0;  // the place of a fork() whose prepare handlers run
  Need need = Need::Nothing;
  bool yielded = false;
  bool in_range = false;           // it reports the second or a later piece of a large access
  bool idle_deadline = false;      // its deadline passes only when no other agent can run
  bool woken = false;              // another agent ended its Need::Wakeup
  bool left_after_signal = false;  // it left Need::Wakeup by itself, after handling a signal
  bool lacked_need = false;        // its need was not available at its last turn
  bool outside = false;            // something outside the program may end its wait
  OnSignal on_signal = OnSignal::GoesOn;
  bool interrupted = false;  // a handler ended the call that allows it
  bool detached = false;
  bool joined = false;
  bool cancelled = false;        // another thread has cancelled it
  bool cancellable = true;       // cancellation is enabled
  bool asynchronous = false;     // asynchronous cancellation: takes effect at its next operation
  bool at_cancel_point = false;  // it is in a cancellation point
};

}  // namespace slalom::preload
