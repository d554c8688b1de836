// Far transfers of control: jumps and calls through descriptors, returns, and returns from interrupts.
#pragma once

#include "vm/cpu/cpu.h"

namespace slalom::vm {

// `size`: operand size in bytes. These set rip. If they return false, cpu.fault is set and nothing has
// changed, unless another task runs now (cpu/task.h).
bool far_jump(Cpu& cpu, const Op* op, uint16_t selector, uint64_t offset, unsigned size);
bool far_call(Cpu& cpu, const Op* op, uint16_t selector, uint64_t offset, unsigned size);
bool far_return(Cpu& cpu, const Op* op, unsigned size, uint64_t release);
bool interrupt_return(Cpu& cpu, const Op* op, unsigned size);

inline bool is_canonical(uint64_t address) {
  return static_cast<uint64_t>(static_cast<int64_t>(address << 16) >> 16) == address;
}

// Reads the stack pointer (and segment) for a privilege level, or an interrupt stack, from the task state
// segment.
bool task_stack(Cpu& cpu, unsigned privilege, uint64_t& pointer, uint16_t& selector);
bool task_interrupt_stack(Cpu& cpu, unsigned number, uint64_t& pointer);

}  // namespace slalom::vm
