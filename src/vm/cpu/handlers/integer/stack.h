// Stack: pushes and pops with the width and checks of a mode. Usually that is the current mode. For a gate or
// far call it is the mode of the target code, because its pushes have that width.
//
// Only commit() changes the stack pointer, so an instruction that faults half-way leaves no trace.
#pragma once

#include "vm/cpu/handler.h"

namespace slalom::vm {

class Stack {
 public:
  explicit Stack(Cpu& cpu) : Stack(cpu, cpu.mode.is_long()) {}
  // The current stack, without a segment as 64-bit code uses it, or with one as other code does.
  Stack(Cpu& cpu, bool is_long) : Stack(cpu, cpu.regs.segments[kSs], cpu.gpr(kRsp), cpu.cpl, is_long) {}
  // Another stack, for a gate that changes the privilege.
  Stack(Cpu& cpu, const Segment& segment, uint64_t pointer, unsigned privilege, bool is_long);

  bool push(const Op* op, unsigned size, uint64_t value);
  bool pop(const Op* op, unsigned size, uint64_t& value);
  void skip(uint64_t bytes) { pointer_ += bytes; }
  uint64_t pointer() const { return pointer_; }
  // Writes the stack pointer, only as many bits as the stack's width has.
  void commit();

 private:
  bool linear(uint64_t offset, unsigned size, bool write, uint64_t& address);

  Cpu& cpu_;
  const Segment segment_;
  uint64_t pointer_;
  uint64_t mask_;  // the width of the stack pointer
  const unsigned privilege_;
  const bool flat_;
};

// Turns the #GP of a stack access into a stack fault: in 64-bit code, a stack address that is not canonical.
inline void blame_stack(Cpu& cpu) {
  if (cpu.leave == Leave::Fault && cpu.fault.vector == kProtection) cpu.fault.vector = kStackFault;
}
inline const Op* stop_at_stack(Cpu& cpu, const Op* op) {
  blame_stack(cpu);
  return stop(cpu, op);
}

}  // namespace slalom::vm
