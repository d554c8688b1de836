// Event: everything an execution tells besides plain memory accesses, in the order it happened.
#pragma once

#include <string_view>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

// Event::value of an Unlock, WriteUnlock, Broadcast, SemPost or BarrierArrive that destroys its object: it
// orders the same operations as these.
inline constexpr int64_t kDestroys = -1;

struct Event {
  Step step;
  AgentId agent;
  OpKind op = OpKind::None;
  Place pc;
  ObjectId object;        // what it is done to
  uint64_t state = 0;     // of the object, before (see trace/op.h)
  AgentId other;          // spawned, joined, woken agent
  int64_t value = 0;      // chosen value, size of an allocation, ...
  std::string_view text;  // of Note and Fail; valid during the call only
  // Only recognised by what a kernel calls, as its locks and allocations are: it explains what was done, but
  // where the machine stops may decide when it is noticed, so that executions are not told apart by it.
  bool recognised = false;
};

}  // namespace slalom
