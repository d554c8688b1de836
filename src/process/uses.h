// Which events of a program use the memory of their object: if that was freed, it is a use after free.
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
    // Of a condition variable. Waking those that wait on a futex is only about its address: whoever was let
    // go by the value that was stored there before may have freed it, as with std::latch.
    case OpKind::Signal:
    case OpKind::Broadcast:
      return event.state != 0;
    default:
      return false;
  }
}

}  // namespace slalom
