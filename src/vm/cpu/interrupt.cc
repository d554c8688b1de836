// Interrupts and exceptions: from a vector through the IDT to the first instruction of the handler.
#include <utility>

#include "vm/cpu/descriptor.h"
#include "vm/cpu/handlers/integer/stack.h"
#include "vm/cpu/memory/mmu.h"
#include "vm/cpu/task.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {
namespace {

bool real_mode_interrupt(Cpu& cpu, uint8_t vector, uint64_t return_rip) {
  const uint64_t entry = uint64_t{vector} * 4;
  if (entry + 3 > cpu.regs.idtr.limit) return cpu.raise(kProtection, entry + 2);
  uint32_t target;
  if (!load_system(cpu, cpu.regs.idtr.base + entry, 4, &target)) return false;
  static const Op none{.handler = nullptr, .base = kZero, .index = kZero};
  Stack stack(cpu);
  if (!stack.push(&none, 2, cpu.rflags()) || !stack.push(&none, 2, cpu.regs.segments[kCs].selector) ||
      !stack.push(&none, 2, return_rip))
    return false;
  stack.commit();
  cpu.set_rflags(cpu.rflags() & ~(flag::kInterrupt | flag::kTrap | flag::kResume));
  Segment segment = cpu.regs.segments[kCs];
  segment.selector = static_cast<uint16_t>(target >> 16);
  segment.base = uint64_t{target >> 16} << 4;
  set_segment(cpu, kCs, segment);
  cpu.gpr(kRip) = target & 0xffff;
  return true;
}

// Marks the fault as external if no instruction caused the delivery in which it occurred. Always returns
// false.
bool mark_external(Cpu& cpu, unsigned external) {
  if (cpu.leave == Leave::Fault && cpu.fault.vector != kPageFault) cpu.fault.code |= external;
  return false;
}

// Two such exceptions make a double fault.
bool contributory(uint8_t vector) {
  return vector == kDivide || (vector >= kInvalidTss && vector <= kProtection);
}

}  // namespace

bool Cpu::interrupt(uint8_t vector, bool soft, bool has_code, uint32_t code, uint64_t return_rip) {
  if (!protected_mode()) return real_mode_interrupt(*this, vector, return_rip);
  const unsigned external = soft ? 0 : 1;
  const unsigned entry_size = long_mode() ? 16 : 8;
  const uint32_t entry_code = vector * 8u + 2;
  const uint64_t entry = uint64_t{vector} * entry_size;
  if (entry + entry_size - 1 > regs.idtr.limit) return raise(kProtection, entry_code | external);
  Descriptor gate;
  if (!load_system(*this, regs.idtr.base + entry, 8, &gate.low)) return false;
  if (entry_size == 16 && !load_system(*this, regs.idtr.base + entry + 8, 8, &gate.high)) return false;
  const unsigned type = gate.type();
  const bool wide = type == 14 || type == 15;
  if (!gate.is_system() || (!wide && (long_mode() || (type != 5 && type != 6 && type != 7))))
    return raise(kProtection, entry_code | external);
  if (soft && gate.dpl() < cpl) return raise(kProtection, entry_code);
  if (!gate.present()) return raise(kNotPresent, entry_code | external);
  if (type == 5) {
    interrupted = true;
    return interrupt_to_task(*this, gate.gate_selector(), external, has_code, code, return_rip);
  }
  const uint16_t selector = gate.gate_selector();
  if ((selector & 0xfffc) == 0) return raise(kProtection, external);
  Descriptor descriptor;
  if (!read_descriptor(*this, selector, kProtection, descriptor)) return mark_external(*this, external);
  Segment target = descriptor.segment(selector);
  if (!target.is_code() || target.dpl() > cpl || (long_mode() && (!target.is_long() || target.big())))
    return raise(kProtection, (selector & 0xfffcu) | external);
  if (!target.present()) return raise(kNotPresent, (selector & 0xfffcu) | external);
  const unsigned privilege = target.conforming() ? cpl : target.dpl();
  const bool from_vm86 = vm86();
  if (from_vm86 && privilege != 0) return raise(kProtection, (selector & 0xfffcu) | external);
  const unsigned size = long_mode() ? 8 : wide ? 4 : 2;
  uint64_t offset = gate.gate_offset();
  if (!wide) offset &= 0xffff;
  if (long_mode() ? !is_canonical(offset) : offset > target.limit) return raise(kProtection, external);

  // Select the stack.
  const Segment old_stack = regs.segments[kSs];
  const uint64_t old_pointer = mode.is_long() ? gpr(kRsp) : static_cast<uint32_t>(gpr(kRsp));
  Segment new_stack = old_stack;
  uint64_t pointer = old_pointer;
  const bool switches = privilege != cpl;
  if (long_mode()) {
    uint16_t unused;
    const bool found = gate.gate_ist() != 0 ? task_interrupt_stack(*this, gate.gate_ist(), pointer)
                                            : !switches || task_stack(*this, privilege, pointer, unused);
    if (!found) return mark_external(*this, external);
    pointer &= ~uint64_t{15};
    if (switches)
      new_stack = {.selector = static_cast<uint16_t>(privilege),
                   .attributes = static_cast<uint16_t>(privilege << 5)};
  } else if (switches) {
    uint16_t stack_selector;
    if (!task_stack(*this, privilege, pointer, stack_selector) ||
        !load_stack_segment(*this, stack_selector, privilege, kInvalidTss, new_stack))
      return mark_external(*this, external);
  }

  // The frame is pushed with the handler's privilege.
  Stack stack(*this, new_stack, pointer, privilege, long_mode());
  static const Op none{.handler = nullptr, .base = kZero, .index = kZero, .segment = kFlatStack};
  uint64_t saved_flags = rflags();
  bool pushed = true;
  if (from_vm86)
    for (SegmentName name : {kGs, kFs, kDs, kEs})
      pushed = pushed && stack.push(&none, size, regs.segments[name].selector);
  if (long_mode() || switches)
    pushed = pushed && stack.push(&none, size, old_stack.selector) && stack.push(&none, size, old_pointer);
  pushed = pushed && stack.push(&none, size, saved_flags) &&
           stack.push(&none, size, regs.segments[kCs].selector) && stack.push(&none, size, return_rip) &&
           (!has_code || stack.push(&none, size, code));
  if (!pushed) {
    if (fault.vector == kStackFault && switches && !long_mode()) fault.code = new_stack.selector & 0xfffc;
    return mark_external(*this, external);
  }
  if (!mark_accessed(*this, descriptor)) return false;
  target.attributes |= 1;

  uint64_t cleared = flag::kTrap | flag::kNested | flag::kResume | flag::kVm86;
  if ((type & 1) == 0) cleared |= flag::kInterrupt;  // an interrupt gate, not a trap gate
  set_rflags(saved_flags & ~cleared);
  if (from_vm86)
    for (SegmentName name : {kGs, kFs, kDs, kEs}) set_segment(*this, name, Segment{});
  set_code_segment(*this, target, privilege);
  if (long_mode() || switches) set_segment(*this, kSs, new_stack);
  const bool wide_stack = long_mode() || new_stack.big();
  gpr(kRsp) = wide_stack ? stack.pointer() : (gpr(kRsp) & ~uint64_t{0xffff}) | (stack.pointer() & 0xffff);
  gpr(kRip) = offset;
  interrupted = true;
  transfer = 0;
  came_from = last_stack = 0;
  return true;
}

void Cpu::deliver_fault() {
  Fault first = fault;
  std::vector<RaisedFault> raised;  // only used if there are several faults
  for (int attempt = 0;; ++attempt) {
    const uint64_t rip = gpr(kRip);  // another task's, if the previous fault went through a task gate
    if (first.vector == kPageFault) regs.cr2 = first.address;
    // Faults (not traps) restart their instruction without hitting its breakpoint again. The saved flags
    // cause that.
    if (first.vector != kDebug) regs.rflags |= flag::kResume;
    leave = Leave::Fault;
    if (interrupt(first.vector, false, first.has_code && protected_mode(), first.code, rip)) {
      tell({.kind = CpuEvent::Kind::Exception, .pc = rip, .number = first.vector, .value = first.code});
      window = true;
      return;
    }
    if (leave == Leave::Unknown) return;
    const Fault second = fault;
    if (raised.empty()) raised.push_back({first, rip, regs.cr2});
    raised.push_back({second, rip, second.vector == kPageFault ? second.address : regs.cr2});
    if (first.vector == kDoubleFault || attempt == 3) {
      regs.activity = Activity::Shutdown;
      last_faults = std::move(raised);
      return;
    }
    const bool makes_double =
        (contributory(first.vector) && contributory(second.vector)) ||
        (first.vector == kPageFault && (contributory(second.vector) || second.vector == kPageFault));
    if (second.vector == kPageFault) regs.cr2 = second.address;
    first = makes_double ? Fault{.vector = kDoubleFault, .has_code = true} : second;
  }
}

}  // namespace slalom::vm
