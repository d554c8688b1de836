#include "vm/cpu/transfer.h"

#include "vm/cpu/descriptor.h"
#include "vm/cpu/handlers/integer/stack.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/task.h"

namespace slalom::vm {

bool task_stack(Cpu& cpu, unsigned privilege, uint64_t& pointer, uint16_t& selector) {
  const Segment& task = cpu.regs.tr;
  const uint16_t code = task.selector & 0xfffc;
  selector = 0;
  if (cpu.long_mode()) {
    const uint64_t offset = 4 + 8 * privilege;
    if (offset + 7 > task.limit) return cpu.raise(kInvalidTss, code);
    if (!load_system(cpu, task.base + offset, 8, &pointer)) return false;
    return is_canonical(pointer) || cpu.raise(kStackFault, 0);
  }
  const bool wide = (task.type() & 8) != 0;  // 32-bit task state segment
  const uint64_t offset = wide ? 4 + 8 * privilege : 2 + 4 * privilege;
  if (offset + (wide ? 5 : 3) > task.limit) return cpu.raise(kInvalidTss, code);
  pointer = 0;
  if (!load_system(cpu, task.base + offset, wide ? 4 : 2, &pointer)) return false;
  return load_system(cpu, task.base + offset + (wide ? 4 : 2), 2, &selector);
}

bool task_interrupt_stack(Cpu& cpu, unsigned number, uint64_t& pointer) {
  const Segment& task = cpu.regs.tr;
  const uint64_t offset = 0x24 + 8 * (number - 1);
  if (offset + 7 > task.limit) return cpu.raise(kInvalidTss, task.selector & 0xfffc);
  if (!load_system(cpu, task.base + offset, 8, &pointer)) return false;
  return is_canonical(pointer) || cpu.raise(kStackFault, 0);
}

namespace {

bool valid_target(Cpu& cpu, const Segment& code, uint64_t offset) {
  if (cpu.long_mode() && code.is_long()) return is_canonical(offset) || cpu.raise(kProtection, 0);
  return offset <= code.limit || cpu.raise(kProtection, 0);
}

// Rejects code segments that are both long-mode and 32-bit.
bool valid_code(Cpu& cpu, const Segment& segment, uint16_t code) {
  if (!segment.is_code()) return cpu.raise(kProtection, code);
  if (cpu.long_mode() && segment.is_long() && segment.big()) return cpu.raise(kProtection, code);
  return true;
}

// Checks the target code segment of a direct far jump or call, which does not change the privilege.
bool direct_target(Cpu& cpu, Descriptor& descriptor, uint16_t selector, Segment& out) {
  const uint16_t code = selector & 0xfffc;
  out = descriptor.segment(selector);
  if (!valid_code(cpu, out, code)) return false;
  if (out.conforming() ? out.dpl() > cpu.cpl : ((selector & 3u) > cpu.cpl || out.dpl() != cpu.cpl))
    return cpu.raise(kProtection, code);
  if (!out.present()) return cpu.raise(kNotPresent, code);
  if (!mark_accessed(cpu, descriptor)) return false;
  out.attributes |= 1;
  return true;
}

bool leads_to_task(const Cpu& cpu, unsigned type) {
  return !cpu.long_mode() && (type == 1 || type == 5 || type == 9);
}

struct CallGate {
  Segment code;
  uint64_t offset;
  unsigned size;
  unsigned parameters;
};

bool read_gate(Cpu& cpu, Descriptor& gate, uint16_t selector, bool is_call, CallGate& out) {
  const uint16_t code = selector & 0xfffc;
  if (gate.dpl() < cpu.cpl || gate.dpl() < (selector & 3u)) return cpu.raise(kProtection, code);
  if (!gate.present()) return cpu.raise(kNotPresent, code);
  if (cpu.long_mode() && !load_system(cpu, gate.address + 8, 8, &gate.high)) return false;
  const uint16_t target = gate.gate_selector();
  if ((target & 0xfffc) == 0) return cpu.raise(kProtection, 0);
  Descriptor descriptor;
  if (!read_descriptor(cpu, target, kProtection, descriptor)) return false;
  out.code = descriptor.segment(target);
  if (!valid_code(cpu, out.code, target & 0xfffc) || out.code.dpl() > cpu.cpl ||
      (!is_call && !out.code.conforming() && out.code.dpl() != cpu.cpl) ||
      (cpu.long_mode() && !out.code.is_long()))
    return cpu.raise(kProtection, target & 0xfffc);
  if (!out.code.present()) return cpu.raise(kNotPresent, target & 0xfffc);
  const bool wide = gate.type() == 12;
  out.size = cpu.long_mode() ? 8 : wide ? 4 : 2;
  out.offset = wide ? gate.gate_offset() : gate.gate_offset() & 0xffff;
  out.parameters = gate.gate_parameters();
  return valid_target(cpu, out.code, out.offset);
}

}  // namespace

bool far_jump(Cpu& cpu, const Op* op, uint16_t selector, uint64_t offset, unsigned size) {
  if (size == 2) offset &= 0xffff;
  if (!cpu.protected_mode() || cpu.vm86()) {
    Segment segment = cpu.regs.segments[kCs];
    segment.selector = selector;
    segment.base = uint64_t{selector} << 4;
    if (offset > segment.limit) return cpu.raise(kProtection, 0);
    set_segment(cpu, kCs, segment);
    cpu.gpr(kRip) = offset;
    return true;
  }
  if ((selector & 0xfffc) == 0) return cpu.raise(kProtection, 0);
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kProtection, descriptor)) return false;
  if (descriptor.is_system()) {
    const unsigned type = descriptor.type();
    if (type == 12 || (type == 4 && !cpu.long_mode())) {
      CallGate gate;
      if (!read_gate(cpu, descriptor, selector, false, gate)) return false;
      set_code_segment(cpu, gate.code, cpu.cpl);
      cpu.gpr(kRip) = gate.offset;
      return true;
    }
    if (leads_to_task(cpu, type))
      return transfer_to_task(cpu, descriptor, selector, TaskEntry::Jump, cpu.gpr(kRip) + op->end());
    return cpu.raise(kProtection, selector & 0xfffc);
  }
  Segment target;
  if (!direct_target(cpu, descriptor, selector, target)) return false;
  if (!(cpu.long_mode() && target.is_long())) offset &= 0xffffffff;
  if (!valid_target(cpu, target, offset)) return false;
  set_code_segment(cpu, target, cpu.cpl);
  cpu.gpr(kRip) = offset;
  return true;
}

bool far_call(Cpu& cpu, const Op* op, uint16_t selector, uint64_t offset, unsigned size) {
  const uint64_t back = cpu.gpr(kRip) + op->end();
  const uint16_t old_cs = cpu.regs.segments[kCs].selector;
  if (size == 2) offset &= 0xffff;
  if (!cpu.protected_mode() || cpu.vm86()) {
    Segment segment = cpu.regs.segments[kCs];
    segment.selector = selector;
    segment.base = uint64_t{selector} << 4;
    if (offset > segment.limit) return cpu.raise(kProtection, 0);
    Stack stack(cpu);
    if (!stack.push(op, size, old_cs) || !stack.push(op, size, back)) return false;
    stack.commit();
    set_segment(cpu, kCs, segment);
    cpu.gpr(kRip) = offset;
    return true;
  }
  if ((selector & 0xfffc) == 0) return cpu.raise(kProtection, 0);
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kProtection, descriptor)) return false;
  if (!descriptor.is_system()) {
    Segment target;
    if (!direct_target(cpu, descriptor, selector, target)) return false;
    if (!(cpu.long_mode() && target.is_long())) offset &= 0xffffffff;
    if (!cpu.long_mode() && !valid_target(cpu, target, offset)) return false;
    Stack stack(cpu, cpu.long_mode() && target.is_long());
    if (!stack.push(op, size, old_cs) || !stack.push(op, size, back)) return false;
    if (cpu.long_mode() && !valid_target(cpu, target, offset)) return false;
    stack.commit();
    set_code_segment(cpu, target, cpu.cpl);
    cpu.gpr(kRip) = offset;
    return true;
  }
  const unsigned type = descriptor.type();
  if (type != 12 && (type != 4 || cpu.long_mode())) {
    if (leads_to_task(cpu, type)) return transfer_to_task(cpu, descriptor, selector, TaskEntry::Call, back);
    return cpu.raise(kProtection, selector & 0xfffc);
  }
  CallGate gate;
  if (!read_gate(cpu, descriptor, selector, true, gate)) return false;
  const unsigned privilege = gate.code.conforming() ? cpu.cpl : gate.code.dpl();
  if (privilege == cpu.cpl) {
    Stack stack(cpu, cpu.long_mode());
    if (!stack.push(op, gate.size, old_cs) || !stack.push(op, gate.size, back)) return false;
    stack.commit();
    set_code_segment(cpu, gate.code, privilege);
    cpu.gpr(kRip) = gate.offset;
    return true;
  }
  uint64_t pointer;
  uint16_t stack_selector;
  if (!task_stack(cpu, privilege, pointer, stack_selector)) return false;
  Segment stack_segment{.selector = static_cast<uint16_t>(privilege),
                        .attributes = static_cast<uint16_t>(privilege << 5)};
  if (!cpu.long_mode() && !load_stack_segment(cpu, stack_selector, privilege, kInvalidTss, stack_segment))
    return false;
  const Segment old_stack = cpu.regs.segments[kSs];
  const uint64_t old_pointer = cpu.gpr(kRsp);
  uint64_t parameters[31];
  Stack from(cpu);
  if (!cpu.long_mode())
    for (unsigned i = 0; i < gate.parameters; ++i)
      if (!from.pop(op, gate.size, parameters[i])) return false;
  // Pushes are checked with the new privilege.
  Stack stack(cpu, stack_segment, pointer, privilege, cpu.long_mode());
  bool pushed = stack.push(op, gate.size, old_stack.selector) && stack.push(op, gate.size, old_pointer);
  if (!cpu.long_mode())
    for (unsigned i = gate.parameters; i-- > 0;) pushed = pushed && stack.push(op, gate.size, parameters[i]);
  pushed = pushed && stack.push(op, gate.size, old_cs) && stack.push(op, gate.size, back);
  if (!pushed) {
    const bool limit = cpu.leave == Leave::Fault && cpu.fault.vector == kStackFault && !cpu.long_mode();
    if (limit) cpu.fault.code = stack_segment.selector & 0xfffc;
    return false;
  }
  set_code_segment(cpu, gate.code, privilege);
  set_segment(cpu, kSs, stack_segment);
  cpu.gpr(kRsp) = stack.pointer();
  cpu.gpr(kRip) = gate.offset;
  return true;
}

namespace {

// Clears data segments that the new privilege may not use.
void drop_privileged_segments(Cpu& cpu) {
  for (SegmentName name : {kEs, kDs, kFs, kGs}) {
    Segment& segment = cpu.regs.segments[name];
    // For a null selector only the privilege bits are cleared: 64-bit code still uses the bases of FS and GS.
    if ((segment.selector & 0xfffc) == 0) {
      segment.selector = 0;
      continue;
    }
    if (segment.conforming() || segment.dpl() >= cpu.cpl) continue;
    set_segment(cpu, name, Segment{});
  }
}

// The common part of far returns and interrupt returns to protected-mode code.
bool return_to(Cpu& cpu, const Op* op, Stack& stack, uint64_t offset, uint16_t selector, unsigned size,
               uint64_t release, bool always_stack) {
  const uint16_t code = selector & 0xfffc;
  const unsigned privilege = selector & 3;
  if (code == 0) return cpu.raise(kProtection, 0);
  Descriptor descriptor;
  if (!read_descriptor(cpu, selector, kProtection, descriptor)) return false;
  Segment target = descriptor.segment(selector);
  if (!valid_code(cpu, target, code)) return false;
  if (privilege < cpu.cpl || (target.conforming() ? target.dpl() > privilege : target.dpl() != privilege))
    return cpu.raise(kProtection, code);
  if (!target.present()) return cpu.raise(kNotPresent, code);
  if (cpu.long_mode() && !target.is_long()) offset &= 0xffffffff;
  stack.skip(release);
  if (privilege == cpu.cpl && !always_stack) {
    if (!valid_target(cpu, target, offset)) return false;
    if (!mark_accessed(cpu, descriptor)) return false;
    target.attributes |= 1;
    stack.commit();
    set_code_segment(cpu, target, privilege);
    cpu.gpr(kRip) = offset;
    return true;
  }
  uint64_t pointer, stack_selector;
  if (!stack.pop(op, size, pointer) || !stack.pop(op, size, stack_selector)) return false;
  stack_selector &= 0xffff;
  Segment stack_segment;
  const bool target_is_64bit = cpu.long_mode() && target.is_long();
  if ((stack_selector & 0xfffc) == 0) {
    if (!target_is_64bit || privilege == 3) return cpu.raise(kProtection, 0);
    if ((stack_selector & 3) != privilege) return cpu.raise(kProtection, 0);
    stack_segment = {.selector = static_cast<uint16_t>(stack_selector),
                     .attributes = static_cast<uint16_t>(privilege << 5)};
  } else if (!load_stack_segment(cpu, static_cast<uint16_t>(stack_selector), privilege, kProtection,
                                 stack_segment)) {
    return false;
  }
  if (!valid_target(cpu, target, offset)) return false;
  if (!mark_accessed(cpu, descriptor)) return false;
  target.attributes |= 1;
  const bool outward = privilege > cpu.cpl;
  set_code_segment(cpu, target, privilege);
  set_segment(cpu, kSs, stack_segment);
  const uint64_t new_pointer = pointer + release;
  cpu.gpr(kRsp) = target_is_64bit ? new_pointer
                  : stack_segment.big()
                      ? static_cast<uint32_t>(new_pointer)
                      : (cpu.gpr(kRsp) & ~uint64_t{0xffff}) | static_cast<uint16_t>(new_pointer);
  cpu.gpr(kRip) = offset;
  if (outward) drop_privileged_segments(cpu);
  return true;
}

}  // namespace

bool far_return(Cpu& cpu, const Op* op, unsigned size, uint64_t release) {
  Stack stack(cpu);
  uint64_t offset, selector;
  if (!stack.pop(op, size, offset) || !stack.pop(op, 2, selector)) return false;
  stack.skip(size - 2);
  if (!cpu.protected_mode() || cpu.vm86()) {
    if (offset > cpu.regs.segments[kCs].limit) return cpu.raise(kProtection, 0);
    stack.skip(release);
    stack.commit();
    Segment segment = cpu.regs.segments[kCs];
    segment.selector = static_cast<uint16_t>(selector);
    segment.base = selector << 4;
    set_segment(cpu, kCs, segment);
    cpu.gpr(kRip) = offset;
    return true;
  }
  return return_to(cpu, op, stack, offset, static_cast<uint16_t>(selector), size, release, false);
}

bool interrupt_return(Cpu& cpu, const Op* op, unsigned size) {
  const unsigned iopl = (cpu.regs.rflags >> 12) & 3;
  if (cpu.vm86() && iopl < 3) return cpu.raise(kProtection, 0);
  if (cpu.protected_mode() && !cpu.vm86() && (cpu.regs.rflags & flag::kNested)) {
    if (cpu.long_mode()) return cpu.raise(kProtection, 0);
    return return_to_task(cpu, cpu.gpr(kRip) + op->end());
  }
  Stack stack(cpu);
  uint64_t offset, selector, flags;
  if (!stack.pop(op, size, offset) || !stack.pop(op, size, selector) || !stack.pop(op, size, flags))
    return false;
  selector &= 0xffff;
  const unsigned old_cpl = cpu.cpl;
  uint64_t mask = flag::kArithmetic | flag::kTrap | flag::kDirection | flag::kNested;
  if (size > 2) mask |= flag::kResume | flag::kAlignment | flag::kId;
  if (!cpu.protected_mode() || cpu.vm86()) {
    if (offset > cpu.regs.segments[kCs].limit) return cpu.raise(kProtection, 0);
    mask |= flag::kInterrupt;
    if (!cpu.vm86()) mask |= flag::kIopl;
    stack.commit();
    Segment segment = cpu.regs.segments[kCs];
    segment.selector = static_cast<uint16_t>(selector);
    segment.base = selector << 4;
    set_segment(cpu, kCs, segment);
    cpu.gpr(kRip) = offset;
    cpu.set_rflags((cpu.rflags() & ~mask) | (flags & mask));
    cpu.regs.nmi_blocked = false;
    return true;
  }
  if (size == 4 && (flags & flag::kVm86) && cpu.cpl == 0 && !cpu.long_mode()) {
    uint64_t values[6];  // esp, ss, es, ds, fs, gs
    for (uint64_t& value : values)
      if (!stack.pop(op, 4, value)) return false;
    cpu.set_rflags((flags & 0x3f7fd5) | flag::kFixed);
    const auto set_v86 = [&](SegmentName name, uint64_t value) {
      Segment segment = real_segment(static_cast<uint16_t>(value), false);
      segment.attributes = 0xf3;
      set_segment(cpu, name, segment);
    };
    set_v86(kSs, values[1]);
    set_v86(kEs, values[2]);
    set_v86(kDs, values[3]);
    set_v86(kFs, values[4]);
    set_v86(kGs, values[5]);
    Segment code = real_segment(static_cast<uint16_t>(selector), false);
    code.attributes = 0xf3;
    cpu.regs.segments[kCs] = code;
    cpu.set_cpl(3);
    cpu.registers_changed();
    cpu.gpr(kRsp) = static_cast<uint32_t>(values[0]);
    cpu.gpr(kRip) = offset & 0xffff;
    cpu.regs.nmi_blocked = false;
    return true;
  }
  // 64-bit code always pops the stack pointer.
  if (!return_to(cpu, op, stack, offset, static_cast<uint16_t>(selector), size, 0, cpu.mode.is_long()))
    return false;
  if (old_cpl == 0) mask |= flag::kIopl;
  if (old_cpl <= iopl) mask |= flag::kInterrupt;
  cpu.set_rflags((cpu.rflags() & ~mask) | (flags & mask));
  cpu.regs.nmi_blocked = false;
  return true;
}

}  // namespace slalom::vm
