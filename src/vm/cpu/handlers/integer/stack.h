// Stack: pushing and popping with the width and the checks of a mode: the current one, or that of the code
// which a gate or far call leads to, since that is what the return address is pushed with.
//
// The stack pointer changes at commit() only, so that an instruction that faults half-way leaves no trace.
#pragma once

#include "vm/cpu/handler.h"

namespace slalom::vm {

class Stack {
 public:
  explicit Stack(Cpu& cpu) : Stack(cpu, cpu.mode.is_long()) {}
  // The current stack as 64-bit code sees it, without a segment, or as other code does.
  Stack(Cpu& cpu, bool is_long) : Stack(cpu, cpu.regs.segments[kSs], cpu.gpr(kRsp), cpu.cpl, is_long) {}
  // Another stack than the current one, as when a gate changes privilege.
  Stack(Cpu& cpu, const Segment& segment, uint64_t pointer, unsigned privilege, bool is_long);

  bool push(const Op* op, unsigned size, uint64_t value);
  bool pop(const Op* op, unsigned size, uint64_t& value);
  void skip(uint64_t bytes) { pointer_ += bytes; }
  uint64_t pointer() const { return pointer_; }
  // Writes the stack pointer: the part of it that the stack's width covers.
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

// 64-bit code that could not reach the stack: an address that is not canonical is a stack fault then.
inline void blame_stack(Cpu& cpu) {
  if (cpu.leave == Leave::Fault && cpu.fault.vector == kProtection) cpu.fault.vector = kStackFault;
}
inline const Op* stop_at_stack(Cpu& cpu, const Op* op) {
  blame_stack(cpu);
  return stop(cpu, op);
}

}  // namespace slalom::vm
