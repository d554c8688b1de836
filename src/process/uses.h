// Returns whether an event uses the memory of its object. If that memory was freed, the event is a use after
// free.
#pragma once

#include "preload/protocol.h"

namespace slalom {

inline bool uses_object(const preload::Record& event) {
  switch (event.op) {
    case OpKind::Lock:
    case OpKind::TryLock:
    case OpKind::Unlock:
    case OpKind::ReadLock:
    case OpKind::ReadUnlock:
    case OpKind::WriteLock:
    case OpKind::WriteUnlock:
    case OpKind::Wait:
    case OpKind::SemWait:
    case OpKind::SemPost:
    case OpKind::BarrierArrive:
      return true;
    // state != 0: on a condition variable. A futex wake-up uses only the address: the thread that the
    // previously stored value released may already have freed it, as with std::latch.
    case OpKind::Signal:
    case OpKind::Broadcast:
      return event.state != 0;
    default:
      return false;
  }
}

}  // namespace slalom
