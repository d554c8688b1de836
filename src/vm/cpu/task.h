// Hardware task switches: jumps, calls, interrupts and returns that lead to another task state segment.
// Legacy modes only; long mode has none.
#pragma once

#include "vm/cpu/cpu.h"
#include "vm/cpu/descriptor.h"

namespace slalom::vm {

enum class TaskEntry : uint8_t { Jump, Call, Interrupt, Return };

// False in all of them: cpu.fault is set. Either nothing has changed then, or the new task already runs and
// the fault is its own (cpu.switched_task tells).

// A far jump or call to a task state segment or task gate.
bool transfer_to_task(Cpu& cpu, Descriptor& target, uint16_t selector, TaskEntry entry, uint64_t return_rip);
// Through a task gate of the interrupt table, with an error code for some exceptions. `external`: bit 0 of
// faults' codes.
bool interrupt_to_task(Cpu& cpu, uint16_t selector, unsigned external, bool has_code, uint32_t code,
                       uint64_t return_rip);
// IRET with the nested-task flag.
bool return_to_task(Cpu& cpu, uint64_t return_rip);

}  // namespace slalom::vm
