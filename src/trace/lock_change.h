// What an operation does to the locks that its agent holds.
//
// Each class that keeps sets of held locks has another use for them. Detectors number the sets and keep the
// order in which locks were taken (LockSets in detect/core/context.h). AtomicOrder intersects sets.
// GuestEvents (vm/control) lists all held locks with their holders, to explain a deadlock, and CheckMachine
// lists them to open them after an execution that cannot end.
#pragma once

#include "trace/op.h"

namespace slalom {

enum class LockChange : uint8_t { None, Take, Release };

// `value` is the event's: 0 if a TryLock failed.
constexpr LockChange lock_change(OpKind kind, int64_t value) {
  switch (kind) {
    case OpKind::Lock:
    case OpKind::ReadLock:
    case OpKind::WriteLock:
      return LockChange::Take;
    case OpKind::TryLock:
      return value != 0 ? LockChange::Take : LockChange::None;
    case OpKind::Unlock:
    case OpKind::ReadUnlock:
    case OpKind::WriteUnlock:
      return LockChange::Release;
    default:
      return LockChange::None;
  }
}

}  // namespace slalom
