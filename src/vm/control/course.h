// Course: all that a KernelMachine did to its PC in one execution, in order.
//
// With the answers to hypercalls, which depend on nothing else, it is enough to take the same machine through
// the same states again without deciding, observing or guessing anything: that is what a debugger needs,
// which wants to observe for itself (gdb/scheduled_run.h). Valid for the machine that it was written down
// from, in this process only: schedules are what is kept.
#pragma once

#include <cstdint>
#include <vector>

namespace slalom::vm {

struct Course {
  struct Leg {
    enum class Kind : uint8_t {
      Run,       // CPU `cpu` until it has retired `value` instructions in all
      Deliver,   // interrupt `value` to CPU `cpu`
      Timer,     // time passes up to the timer of CPU `cpu`
      AnyTimer,  // time passes up to the next timer
      Answer,    // RAX of CPU `cpu` is `value`: what a hypercall was answered
      Natural,   // all CPUs in turns, until `value` instructions have been executed in all: the check
    };
    Kind kind = Kind::Run;
    unsigned cpu = 0;
    uint64_t value = 0;
    bool operator==(const Leg&) const = default;
  };

  std::vector<Leg> legs;
  uint64_t begin = 0, end = 0;  // instructions of all CPUs since the machine was made
  uint64_t end_hash = 0;        // of the PC alone

  void add(const Leg& leg) {
    // Where a run stopped for a moment only is of no interest.
    if (leg.kind == Leg::Kind::Run && !legs.empty() && legs.back().kind == leg.kind &&
        legs.back().cpu == leg.cpu)
      legs.back() = leg;
    else
      legs.push_back(leg);
  }
};

}  // namespace slalom::vm
