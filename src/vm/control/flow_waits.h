// FlowWaits: finds out what the flows of a test wait for, when nothing goes on any more. It reads the flows'
// kernel stacks and the open calls of lock functions, and changes nothing.
#pragma once

#include <optional>

#include "trace/names.h"
#include "trace/outcome.h"
#include "vm/control/guest_events.h"
#include "vm/control/kernel_contexts.h"
#include "vm/control/kernel_events.h"

namespace slalom::vm {

class FlowWaits {
 public:
  struct Parts {  // of the machine whose flows wait
    Pc& pc;
    const Tap& tap;
    const KernelContexts& contexts;
    const KernelEvents& events;
    const GuestEvents& guest;
    const KernelMachineOptions& options;
    const Names& names;
  };
  explicit FlowWaits(const Parts& parts) : m_(parts) {}

  bool for_ever() const;  // nothing will happen any more
  Deadlocked deadlock() const;

 private:
  struct LockWait {
    uint64_t lock = 0;
    Place caller;  // the place that called the lock function
  };
  bool sleeps_for_a_time(unsigned cpu) const;  // the flow of that CPU waits for a timer
  std::optional<LockWait> waits_for_lock(unsigned cpu) const;
  std::optional<unsigned> releases_lock(uint64_t lock) const;
  bool implements_waiting(Place place) const;  // the function that the place is in
  Place waits_at(unsigned cpu) const;          // where the flow of that CPU waits

  Parts m_;
};

}  // namespace slalom::vm
