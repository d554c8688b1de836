// OpKind: what an agent does to an object, and the little that slalom needs to know about each kind:
// whether it writes (so that two operations depend on each other) and when it can run (so that a search knows
// which orders are possible). The object's state is one number whose meaning belongs to the object's kind:
//
//   mutex        0 free, 1 held                  semaphore   the count
//   rwlock       readers << 1 | writer           agent       0 running, 1 ended
//   cpu          0 open, 1 masked, 2 in handler  timer       0 idle, 1 armed, 2 fired
//   interrupt    how many times it is pending    to acquire  1 not yet, 0 released
//   everything else: 0
//
// Adding a kind: extend the table in op.cc; the compiler finds the rest.
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
  CompareExchange,  // a failed one only reads
  // mutex
  Lock,
  TryLock,  // a failed one only reads
  Unlock,
  // reader-writer lock
  ReadLock,
  ReadUnlock,
  WriteLock,
  WriteUnlock,
  // condition variable (Wait also unlocks its mutex and ends with a Lock of it)
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
  Wake,  // the running agent completes another one's blocked operation: orders, but is never reversed
  Yield,
  // the running agent's own choice of a value
  Choose,
  // heap
  Alloc,
  Free,
  HeapUse,  // an access to a heap object, as seen by its lifetime
  // interrupts: the object is the cpu of the agent that can be interrupted
  IrqEnter,
  IrqExit,
  IrqMask,
  IrqUnmask,
  IrqRaise,  // the object is the interrupt
  CpuUse,    // an ordinary operation of an agent that can be interrupted
  // timers
  TimerArm,
  TimerCancel,
  TimerFire,
  // text
  Note,
  Fail,
  // at the end: files hold these numbers
  IrqTake,  // a delivery, as the interrupt sees it: pending once less. The object is the interrupt
  GoOn,     // an agent starts, or goes on after another one has completed its operation
  // what only CPUs do
  Call,
  Return,
  SyscallEnter,  // the value is its number
  SyscallExit,   // the value is its result
  ThreadSwitch,  // the object is the thread that runs now
  Console,       // a line of text
  // what threads of a team do for each other (preload/openmp/openmp.h)
  Release,  // what was before comes before the Acquire
  Acquire,  // of what was released; it waits for that
  Claim,    // takes what the next one cannot have; orders nothing
};
inline constexpr int kOpKinds = static_cast<int>(OpKind::Claim) + 1;

std::string_view name(OpKind kind);  // "load", "lock", ...

enum class Effect : uint8_t { None, Read, Write };
Effect effect(OpKind kind);  // on its object; of a CompareExchange or TryLock: the stronger of the two
// Do two operations with these effects on the same object depend on each other?
constexpr bool conflict(Effect a, Effect b) {
  return (a == Effect::Write && b != Effect::None) || (b == Effect::Write && a != Effect::None);
}
inline bool is_memory(OpKind kind) {
  return kind >= OpKind::Load && kind <= OpKind::CompareExchange;
}
inline bool is_atomic(OpKind kind) {
  return kind >= OpKind::AtomicLoad && kind <= OpKind::CompareExchange;
}
// Its effect depends on the object's value: read-only when it fails.
inline bool may_only_read(OpKind kind) {
  return kind == OpKind::CompareExchange || kind == OpKind::TryLock;
}

bool may_block(OpKind kind);                               // false: can_run() is always true
bool can_run(OpKind kind, uint64_t object_state);          // true for kinds that never block
uint64_t state_after(OpKind kind, uint64_t object_state);  // for kinds that can make others block

}  // namespace slalom
