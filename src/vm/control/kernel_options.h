// What a KernelMachine is given once, when it is made.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "machine/machine.h"
#include "vm/control/guest_model.h"
#include "vm/control/guest_plan.h"
#include "vm/control/scope.h"

namespace slalom::vm {

// The contexts that a search decides about. Other CPUs run only if none of these contexts can run. Other
// interrupts arrive as soon as their CPU runs and accepts them; they count as a part of that CPU's work.
struct Contexts {
  uint32_t cpus = ~uint32_t{0};  // one bit for each CPU
  bool timers = true, ipis = true, devices = true;

  bool has(uint8_t vector, const GuestTraits& guest) const {
    if (vector == guest.timer_vector) return timers;
    return vector >= guest.first_ipi ? ipis : devices;
  }
};

struct KernelMachineOptions {
  unsigned flows = 2;  // flow i runs on CPU i
  // What the flows run unless the inputs of an execution say it: flow i gets program i from SLALOM_PROGRAM.
  std::shared_ptr<const TestInput> test;
  bool has_check = false;                // the guest reports SLALOM_CHECKED after the test
  uint64_t check_limit = 1'000'000'000;  // instructions that the check may take
  std::vector<PlanPart> parts;           // of the agent's plan, the check last; empty if unknown
  GuestTraits guest;                     // the defaults if nothing is known of it
  MakeGuestModel make_model;             // the source of lock and allocation events; nullptr: none
  Contexts contexts;
  Scope scope;                        // empty: the whole kernel
  std::vector<CodeRange> no_choices;  // code in which communication makes no choice points; sorted
  // Code in which communication with interrupts of the same CPU makes choice points (see communication.h).
  CodeRange interruptible;
  // How often a CPU's timer may fire before it is due. Time advances to the timer then.
  unsigned early_timers = 2;
};

}  // namespace slalom::vm
