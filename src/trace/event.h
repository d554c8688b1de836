// Event: anything that happens in an execution, except plain memory accesses. Sinks get events in their
// order.
#pragma once

#include <string_view>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

// Event::value of an Unlock, WriteUnlock, Broadcast, SemPost or BarrierArrive that destroys its object. A
// destruction orders the same operations as these kinds do.
inline constexpr int64_t kDestroys = -1;

// Values of Event::state of an Alloc. kOfPages: pages for any purpose. kMayStay, emitted at the end: no
// allocation, but the number (`value`) of allocations made at `pc` that stay if whole calls run one after the
// other.
inline constexpr uint64_t kOfPages = 1, kMayStay = 2;
// Event::state of a Free: readers may still access the memory.
inline constexpr uint64_t kOutlivesFree = 1;

// Event::value of an IrqEnter on a kernel: vectors from here on are sent by CPUs to each other.
inline constexpr int64_t kFirstIpiVector = 0xf0;

// Event::text of the Note that a program's end emits for each thread that was neither joined nor detached.
inline constexpr std::string_view kLeakedThread = "leaked thread";

struct Event {
  Step step;
  AgentId agent;
  OpKind op = OpKind::None;
  Place pc;
  ObjectId object;        // the object of the operation
  uint64_t state = 0;     // the object's state before the operation (see trace/op.h)
  AgentId other;          // the spawned, joined or woken agent
  int64_t value = 0;      // chosen value, size of an allocation, ...
  std::string_view text;  // of Note and Fail; valid only during the call
  // The machine recognised the operation by a call that the kernel made (its locks and allocations are found
  // this way). It explains the execution, but the machine's stops can decide when it is noticed. Comparisons
  // of executions therefore ignore it.
  bool recognised = false;
};

}  // namespace slalom
