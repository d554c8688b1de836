// OpKind: what an agent does to an object. For each kind, slalom knows whether it writes (so that two
// operations depend on each other) and when it can run (so that a search knows which orders are possible).
// The object's state is one number. Its meaning depends on the object's kind:
//
//   mutex        0 free, 1 held                  semaphore   the count
//   rwlock       readers << 1 | writer           agent       0 running, 1 ended
//   cpu          0 open, 1 masked, 2 in handler  timer       0 idle, 1 armed, 2 fired
//   interrupt    how many times it is pending    to acquire  1 not yet, 0 released
//   everything else: 0
//
// To add a kind, extend the table in op.cc; the compiler finds the other places.
#pragma once

#include <cstdint>
#include <string_view>

namespace slalom {

enum class OpKind : uint8_t {
  None,
  // memory
  Load,
  Store,
  AtomicLoad,
  AtomicStore,
  ReadModifyWrite,
  CompareExchange,  // only reads if it fails
  // mutex
  Lock,
  TryLock,  // only reads if it fails
  Unlock,
  // reader-writer lock
  ReadLock,
  ReadUnlock,
  WriteLock,
  WriteUnlock,
  // condition variable; Wait also unlocks its mutex, and ends with a Lock of it
  Wait,
  Signal,
  Broadcast,
  // semaphore, barrier
  SemWait,
  SemPost,
  BarrierArrive,
  // agents
  Spawn,
  Join,
  Exit,
  Wake,  // the running agent completes a blocked operation of another agent; orders, but is never reversed
  Yield,
  // the running agent chooses a value
  Choose,
  // heap
  Alloc,
  Free,
  HeapUse,  // an access to a heap object, as the object's lifetime sees it
  // interrupts; the object is the cpu of the interruptible agent
  IrqEnter,
  IrqExit,
  IrqMask,
  IrqUnmask,
  IrqRaise,  // the object is the interrupt
  CpuUse,    // an ordinary operation of an interruptible agent
  // timers
  TimerArm,
  TimerCancel,
  TimerFire,
  // text
  Note,
  Fail,
  // New kinds go at the end: files hold these numbers.
  // A delivery as the interrupt sees it: one pending delivery less. The object is the interrupt.
  IrqTake,
  GoOn,  // an agent starts, or continues after another agent completed its operation
  // only CPUs do these
  Call,
  Return,
  SyscallEnter,  // the value is its number
  SyscallExit,   // the value is its result
  ThreadSwitch,  // the object is the thread that runs now
  Console,       // a line of text
  // synchronisation within a team of threads (preload/openmp/openmp.h)
  Release,  // everything before it happens before the Acquire
  Acquire,  // waits for the Release of the same object
  Claim,    // takes the right to run a piece of work, which no other agent can have then; orders nothing
};
inline constexpr int kOpKinds = static_cast<int>(OpKind::Claim) + 1;

std::string_view name(OpKind kind);  // "load", "lock", ...

enum class Effect : uint8_t { None, Read, Write };
Effect effect(OpKind kind);  // on the object; the stronger of the two for CompareExchange and TryLock
// Returns whether two operations with these effects on the same object depend on each other.
constexpr bool conflict(Effect a, Effect b) {
  return (a == Effect::Write && b != Effect::None) || (b == Effect::Write && a != Effect::None);
}
inline bool is_memory(OpKind kind) {
  return kind >= OpKind::Load && kind <= OpKind::CompareExchange;
}
inline bool is_atomic(OpKind kind) {
  return kind >= OpKind::AtomicLoad && kind <= OpKind::CompareExchange;
}
// The effect depends on the object's value: a failed operation only reads.
inline bool may_only_read(OpKind kind) {
  return kind == OpKind::CompareExchange || kind == OpKind::TryLock;
}

bool may_block(OpKind kind);                               // false: can_run() is always true
bool can_run(OpKind kind, uint64_t object_state);          // true for kinds that never block
uint64_t state_after(OpKind kind, uint64_t object_state);  // for kinds that can block other agents

}  // namespace slalom
