// Hardware task switches: jumps, calls, interrupts and returns to another task state segment. Legacy modes
// only; long mode has none.
#pragma once

#include "vm/cpu/cpu.h"
#include "vm/cpu/descriptor.h"

namespace slalom::vm {

enum class TaskEntry : uint8_t { Jump, Call, Interrupt, Return };

// If one of these returns false, cpu.fault is set. Either nothing has changed, or the new task already runs
// and the fault belongs to it (cpu.switched_task).

// A far jump or call to a task state segment or task gate.
bool transfer_to_task(Cpu& cpu, Descriptor& target, uint16_t selector, TaskEntry entry, uint64_t return_rip);
// An interrupt through a task gate, with an error code for some exceptions. `external`: bit 0 of the faults'
// error codes.
bool interrupt_to_task(Cpu& cpu, uint16_t selector, unsigned external, bool has_code, uint32_t code,
                       uint64_t return_rip);
// IRET with the nested-task flag.
bool return_to_task(Cpu& cpu, uint64_t return_rip);

}  // namespace slalom::vm
