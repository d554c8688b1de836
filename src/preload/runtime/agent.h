// Agent: what the runtime knows of a thread that it controls, besides what it shows slalom (Slot): what the
// thread waits for, what a signal or a cancellation does to that, and how it was started. Not for what is
// decided or told.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "preload/protocol.h"

namespace slalom::preload {

inline constexpr uint64_t kNever = UINT64_MAX;

// What an operation needs before it can be done.
enum class Need : uint8_t {
  Nothing,
  Mutex,
  Spin,
  ReadLock,
  WriteLock,
  Semaphore,
  AgentEnd,
  Once,
  Descriptors,  // one of several is ready
  Signal,       // one of a set is pending
  Handler,      // a signal's handler has run
  Child,        // a process that the program has started ends
  Timer,        // its time comes
  Sleep,        // nothing, but a handler ends it
  PiLock,       // a futex that is a lock and names its owner
  OwnedLock,    // the same, that is no futex
  Kernel,       // what the kernel says when it is asked
  Wakeup,
};

// What a handler that runs meanwhile does to a call that waits.
enum class OnSignal : uint8_t {
  GoesOn,
  Ends,           // with EINTR
  EndsOrRestarts  // as the handler's SA_RESTART says
};

// Which process is waited for: as waitid() is asked.
struct ChildWait {
  int kind, id, options;
};

// What only the kernel can say, or libc: may the call go on? Asking changes nothing. Those who wait derive
// from it.
struct KernelWait {
  bool (*can_go_on)(const KernelWait&);
};

// Where an agent was when it last began an operation in code that is one step to the search, from the
// outermost function of that code inward.
struct AtomicCall {
  static constexpr uint32_t kMostFrames = 8;
  uint64_t stack = 0;  // of the outermost
  uint32_t function = 0, frame_count = 0;
  uint64_t frames[kMostFrames] = {};  // their program counters
};

// The part of an agent that slalom does not look at.
struct Agent {
  pthread_t thread{};
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  const void* object = nullptr;       // that `need` is about
  void* signal_stack = nullptr;       // on which handlers run
  size_t guard = 0;                   // below its stack, as the program asked for it
  uint64_t team_entry = 0;            // what threads that it starts for a team of OpenMP's are to execute
  const void* base = nullptr;         // where the stack of the program's own functions begins
  pthread_mutex_t* relock = nullptr;  // of a wait on a condition variable: what it does when woken
  uint64_t deadline = kNever;         // of a wait with a time limit, in virtual nanoseconds
  struct LocalDestructor* destructors = nullptr;  // of C++ thread_local objects
  uint64_t signals = 0;                           // sent to it while it waited for them
  uint64_t arrived = 0;                           // sent to it for its handlers
  uint64_t blocked = 0;                           // signals that it does not take now
  uint32_t count = 0;                             // of descriptors that `object` points to
  uint32_t bits = 0;                              // of a wait on a futex
  uint32_t target = kNobody;                      // who is joined
  uint32_t spawned = 0;
  uint32_t spurious = 0;  // wake-ups so far
  uint32_t calls = 0;     // that could fail (preload/runtime/errors.h)
  uint32_t repeated = 0;  // which of the errors that come again is next, plus 1; 0: not known yet
  AtomicCall atomic_call;
  uint64_t forks_at = 0;  // the place of its fork() that is being prepared
  Need need = Need::Nothing;
  bool yielded = false;
  bool in_range = false;  // reports the second or a later piece of a large access
  bool patient = false;   // its time runs out only when nothing else can run
  bool woken = false;     // out of Need::Wakeup, by another agent
  bool left = false;      // the same, by itself, since it has handled a signal
  bool waited = false;    // it had nothing of what it needed, when it was last given its turn
  bool outside = false;   // what it waits for may come from outside of the program
  OnSignal on_signal = OnSignal::GoesOn;
  bool interrupted = false;  // the call that said so was ended
  bool detached = false;
  bool joined = false;
  bool cancelled = false;        // another thread has asked it to end
  bool cancellable = true;       // it may be
  bool asynchronous = false;     // anywhere, which is at its next operation
  bool at_cancel_point = false;  // what it waits in ends, then
};

}  // namespace slalom::preload
