// Privileged instructions, system calls, time. All of it returns to the run loop.
#include "vm/cpu/descriptor.h"
#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {
namespace {

const Op* done(Cpu& cpu, const Op* op) {
  return leave(cpu, next_rip(cpu, op));
}
const Op* done_for_interrupts(Cpu& cpu, const Op* op) {
  return leave_for_interrupts(cpu, next_rip(cpu, op));
}

bool privileged(Cpu& cpu) {
  return cpu.cpl == 0 || cpu.raise(kProtection, 0);
}

const Op* hlt(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  cpu.regs.activity = Activity::Halted;
  cpu.tell({.kind = CpuEvent::Kind::Halt, .pc = cpu.gpr(kRip) + op->offset});
  return done_for_interrupts(cpu, op);
}

bool may_change_interrupts(Cpu& cpu) {
  const unsigned iopl = (cpu.regs.rflags >> 12) & 3;
  return !cpu.protected_mode() || cpu.cpl <= iopl || cpu.raise(kProtection, 0);
}

const Op* cli(Cpu& cpu, const Op* op) {
  if (!may_change_interrupts(cpu)) return stop(cpu, op);
  cpu.regs.rflags &= ~flag::kInterrupt;
  NEXT;
}

const Op* sti(Cpu& cpu, const Op* op) {
  if (!may_change_interrupts(cpu)) return stop(cpu, op);
  if (!(cpu.regs.rflags & flag::kInterrupt)) cpu.regs.interrupt_shadow = true;
  cpu.regs.rflags |= flag::kInterrupt;
  return done_for_interrupts(cpu, op);
}

// --- control and model-specific registers ---

const Op* mov_from_cr(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  uint64_t value = 0;
  switch (op->src) {
    case 0:
      value = cpu.regs.cr0;
      break;
    case 2:
      value = cpu.regs.cr2;
      break;
    case 3:
      value = cpu.regs.cr3;
      break;
    case 4:
      value = cpu.regs.cr4;
      break;
    case 8:
      value = cpu.system.bus.task_priority(cpu.id) >> 4;
      break;
    default:
      return raise(cpu, op, kInvalidOpcode);
  }
  cpu.gpr(op->dst) = cpu.mode.is_long() ? value : static_cast<uint32_t>(value);
  return done(cpu, op);
}

const Op* mov_to_cr(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  const uint64_t value = cpu.mode.is_long() ? cpu.gpr(op->src) : static_cast<uint32_t>(cpu.gpr(op->src));
  if (!write_cr(cpu, op->dst, value)) return stop(cpu, op);
  return done_for_interrupts(cpu, op);
}

const Op* mov_from_dr(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  const unsigned number = op->src == 4 ? 6 : op->src == 5 ? 7 : op->src;
  if ((op->src == 4 || op->src == 5) && (cpu.regs.cr4 & cr4::kDe)) return raise(cpu, op, kInvalidOpcode);
  uint64_t value = cpu.regs.dr[number];
  if (number == 6) value |= 0xffff0ff0;
  if (number == 7) value |= 0x400;
  cpu.gpr(op->dst) = value;
  return done(cpu, op);
}

const Op* mov_to_dr(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  if ((op->dst == 4 || op->dst == 5) && (cpu.regs.cr4 & cr4::kDe)) return raise(cpu, op, kInvalidOpcode);
  const unsigned number = op->dst == 4 ? 6 : op->dst == 5 ? 7 : op->dst;
  const uint64_t value = cpu.gpr(op->src);
  if (number >= 6 && cpu.mode.is_long() && (value >> 32) != 0) return raise(cpu, op, kProtection, 0);
  cpu.regs.dr[number] = value;
  if (number == 7 && (value & 0xff) != 0) {
    cpu.unknown = "hardware breakpoints (debug register 7 enables some)";
    cpu.leave = Leave::Unknown;
    return stop(cpu, op);
  }
  return done(cpu, op);
}

const Op* clts(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  cpu.regs.cr0 &= ~cr0::kTs;
  return done(cpu, op);
}

template <Source source>
const Op* lmsw(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  uint16_t value;
  if (!load_source<uint16_t, source>(cpu, op, value)) return stop(cpu, op);
  // LMSW can set PE but not clear it.
  const uint64_t pe = cpu.regs.cr0 & cr0::kPe;
  if (!write_cr(cpu, 0, (cpu.regs.cr0 & ~uint64_t{15}) | (value & 15) | pe)) return stop(cpu, op);
  return done(cpu, op);
}

template <class T>
const Op* smsw(Cpu& cpu, const Op* op) {
  set<T>(cpu, op->dst, static_cast<T>(cpu.regs.cr0));
  return done(cpu, op);
}
const Op* smsw_memory(Cpu& cpu, const Op* op) {
  if (!store_operand(cpu, op, static_cast<uint16_t>(cpu.regs.cr0))) return stop(cpu, op);
  return done(cpu, op);
}

const Op* rdmsr(Cpu& cpu, const Op* op) {
  uint64_t value;
  if (!privileged(cpu) || !read_msr(cpu, get<uint32_t>(cpu, kRcx), value)) return stop(cpu, op);
  set<uint32_t>(cpu, kRax, static_cast<uint32_t>(value));
  set<uint32_t>(cpu, kRdx, static_cast<uint32_t>(value >> 32));
  return done(cpu, op);
}

const Op* wrmsr(Cpu& cpu, const Op* op) {
  const uint64_t value = uint64_t{get<uint32_t>(cpu, kRdx)} << 32 | get<uint32_t>(cpu, kRax);
  if (!privileged(cpu) || !write_msr(cpu, get<uint32_t>(cpu, kRcx), value)) return stop(cpu, op);
  return done_for_interrupts(cpu, op);
}

const Op* rdtsc(Cpu& cpu, const Op* op) {
  if ((cpu.regs.cr4 & cr4::kTsd) && cpu.cpl != 0) return raise(cpu, op, kProtection, 0);
  const uint64_t value = cpu.system.bus.now() + cpu.regs.tsc_offset;
  set<uint32_t>(cpu, kRax, static_cast<uint32_t>(value));
  set<uint32_t>(cpu, kRdx, static_cast<uint32_t>(value >> 32));
  return done(cpu, op);
}

// There are no performance counters, so every index is invalid.
const Op* rdpmc(Cpu& cpu, const Op* op) {
  return raise(cpu, op, kProtection, 0);
}

const Op* cpuid_op(Cpu& cpu, const Op* op) {
  uint32_t out[4];
  cpuid(cpu, get<uint32_t>(cpu, kRax), get<uint32_t>(cpu, kRcx), out);
  set<uint32_t>(cpu, kRax, out[0]);
  set<uint32_t>(cpu, kRbx, out[1]);
  set<uint32_t>(cpu, kRcx, out[2]);
  set<uint32_t>(cpu, kRdx, out[3]);
  return done(cpu, op);
}

// The guest cannot observe caches and the TLB.
const Op* privileged_nothing(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  return done(cpu, op);
}

// --- descriptor tables ---

template <bool is_gdt>
const Op* load_table(Cpu& cpu, const Op* op) {
  if (!privileged(cpu)) return stop(cpu, op);
  uint64_t address;
  uint16_t limit;
  const unsigned size = cpu.mode.is_long() ? 8 : 4;
  if (!address_of<AccessKind::Read>(cpu, op, 2 + size, address)) return stop(cpu, op);
  if (!load_slow(cpu, op, address, 2)) return stop(cpu, op);
  std::memcpy(&limit, cpu.buffer.data(), 2);
  if (!load_slow(cpu, op, address + 2, size)) return stop(cpu, op);
  uint64_t base = 0;
  std::memcpy(&base, cpu.buffer.data(), size);
  if (!cpu.mode.is_long() && op->extra == 2) base &= 0xffffff;
  if (cpu.mode.is_long() && !is_canonical(base)) return raise(cpu, op, kProtection, 0);
  TableRegister& table = is_gdt ? cpu.regs.gdtr : cpu.regs.idtr;
  table = {.base = base, .limit = limit};
  return done(cpu, op);
}

template <bool is_gdt>
const Op* store_table(Cpu& cpu, const Op* op) {
  const TableRegister& table = is_gdt ? cpu.regs.gdtr : cpu.regs.idtr;
  uint64_t address;
  const unsigned size = cpu.mode.is_long() ? 8 : 4;
  if (!address_of<AccessKind::Write>(cpu, op, 2 + size, address)) return stop(cpu, op);
  if (!check_writable(cpu, address, 2 + size)) return stop(cpu, op);
  std::memcpy(cpu.buffer.data(), &table.limit, 2);
  if (!store_slow(cpu, op, address, 2)) return stop(cpu, op);
  std::memcpy(cpu.buffer.data(), &table.base, 8);
  if (!store_slow(cpu, op, address + 2, size)) return stop(cpu, op);
  return done(cpu, op);
}

template <bool task, Source source>
const Op* load_selector(Cpu& cpu, const Op* op) {
  if (!cpu.protected_mode() || cpu.vm86()) return raise(cpu, op, kInvalidOpcode);
  uint16_t selector;
  if (!privileged(cpu) || !load_source<uint16_t, source>(cpu, op, selector)) return stop(cpu, op);
  if (!(task ? load_task(cpu, selector) : load_ldt(cpu, selector))) return stop(cpu, op);
  return done(cpu, op);
}

template <bool task, bool memory>
const Op* store_selector(Cpu& cpu, const Op* op) {
  if (!cpu.protected_mode() || cpu.vm86()) return raise(cpu, op, kInvalidOpcode);
  const uint16_t selector = task ? cpu.regs.tr.selector : cpu.regs.ldtr.selector;
  if constexpr (memory) {
    if (!store_operand(cpu, op, selector)) return stop(cpu, op);
  } else if (op->extra == 2) {
    set<uint16_t>(cpu, op->dst, selector);
  } else {
    cpu.gpr(op->dst) = selector;
  }
  return done(cpu, op);
}

// --- system calls ---

const Op* swapgs(Cpu& cpu, const Op* op) {
  if (!cpu.mode.is_long()) return raise(cpu, op, kInvalidOpcode);
  if (!privileged(cpu)) return stop(cpu, op);
  std::swap(cpu.regs.segments[kGs].base, cpu.regs.kernel_gs_base);
  cpu.segment_base[kWithGs] = cpu.regs.segments[kGs].base;
  NEXT;
}

Segment flat_segment(uint16_t selector, bool code, bool is_long, unsigned dpl) {
  const uint16_t type = code ? 0x9b : 0x93;
  return {.selector = selector,
          .attributes = static_cast<uint16_t>(type | dpl << 5 | 0x800 | (is_long ? 0x200 : 0x400)),
          .limit = 0xffffffff};
}

// SYSCALL and SYSRET end here. Other instructions trap if TF was set before them. These trap if TF is set
// after them: a kernel that masks TF is entered without a trap, and SYSRET completes the step of a program's
// SYSCALL.
const Op* leave_by_new_flags(Cpu& cpu, uint64_t target) {
  cpu.steps_by_new_flag = true;
  return leave_for_interrupts(cpu, target);
}

const Op* syscall(Cpu& cpu, const Op* op) {
  if (!(cpu.regs.efer & efer::kSce)) return raise(cpu, op, kInvalidOpcode);
  const uint16_t selector = static_cast<uint16_t>((cpu.regs.star >> 32) & 0xfffc);
  if (!cpu.long_mode()) {
    cpu.gpr(kRcx) = static_cast<uint32_t>(next_rip(cpu, op));
    cpu.set_rflags(cpu.rflags() & ~(flag::kInterrupt | flag::kResume | flag::kVm86));
    set_code_segment(cpu, flat_segment(selector, true, false, 0), 0);
    set_segment(cpu, kSs, flat_segment(static_cast<uint16_t>(selector + 8), false, false, 0));
    return leave_by_new_flags(cpu, static_cast<uint32_t>(cpu.regs.star));
  }
  cpu.tell({.kind = CpuEvent::Kind::SystemCall,
            .pc = cpu.gpr(kRip) + op->offset,
            .number = cpu.gpr(kRax),
            .arguments = {cpu.gpr(kRdi), cpu.gpr(kRsi), cpu.gpr(kRdx), cpu.gpr(10), cpu.gpr(8), cpu.gpr(9)}});
  cpu.last_stack = 0;
  const uint64_t flags = cpu.rflags() & ~flag::kResume;
  const uint64_t target = cpu.mode.is_long() ? cpu.regs.lstar : cpu.regs.cstar;
  cpu.gpr(kRcx) = next_rip(cpu, op);
  cpu.gpr(11) = flags;
  cpu.set_rflags((flags & ~cpu.regs.sfmask) | flag::kFixed);
  set_code_segment(cpu, flat_segment(selector, true, true, 0), 0);
  set_segment(cpu, kSs, flat_segment(static_cast<uint16_t>(selector + 8), false, false, 0));
  return leave_by_new_flags(cpu, target);
}

const Op* sysret(Cpu& cpu, const Op* op) {
  if (!(cpu.regs.efer & efer::kSce)) return raise(cpu, op, kInvalidOpcode);
  if (!cpu.protected_mode()) return raise(cpu, op, kProtection, 0);
  if (!privileged(cpu)) return stop(cpu, op);
  const uint16_t selector = static_cast<uint16_t>(cpu.regs.star >> 48);
  const bool to_64bit = op->extra == 8;
  const uint64_t target = to_64bit ? cpu.gpr(kRcx) : get<uint32_t>(cpu, kRcx);
  if (to_64bit && !is_canonical(target)) return raise(cpu, op, kProtection, 0);  // as on Intel's CPUs
  if (cpu.long_mode()) {
    const uint64_t flags = cpu.gpr(11) & 0x3c7fd7;
    cpu.set_rflags((flags & ~(flag::kResume | flag::kVm86)) | flag::kFixed);
  } else {
    cpu.set_rflags(cpu.rflags() | flag::kInterrupt);
  }
  cpu.tell({.kind = CpuEvent::Kind::SystemReturn, .pc = target, .value = cpu.gpr(kRax)});
  const uint16_t code = static_cast<uint16_t>((to_64bit ? selector + 16 : selector) | 3);
  set_code_segment(cpu, flat_segment(code, true, to_64bit, 3), 3);
  set_segment(cpu, kSs, flat_segment(static_cast<uint16_t>((selector + 8) | 3), false, false, 3));
  return leave_by_new_flags(cpu, target);
}

// --- selection ---

uint8_t control_number(ZydisRegister reg) {
  return static_cast<uint8_t>(ZydisRegisterGetId(reg));
}

Handler select_control(Instruction& in, Op& op) {
  const auto kind = [&](unsigned i) {
    return in.is_register(i) ? ZydisRegisterGetClass(in.reg(i)) : ZYDIS_REGCLASS_INVALID;
  };
  if (kind(0) == ZYDIS_REGCLASS_CONTROL || kind(0) == ZYDIS_REGCLASS_DEBUG) {
    op.dst = control_number(in.reg(0));
    op.src = in.register_number(1);
    return kind(0) == ZYDIS_REGCLASS_CONTROL ? mov_to_cr : mov_to_dr;
  }
  if (kind(1) == ZYDIS_REGCLASS_CONTROL || kind(1) == ZYDIS_REGCLASS_DEBUG) {
    op.src = control_number(in.reg(1));
    op.dst = in.register_number(0);
    return kind(1) == ZYDIS_REGCLASS_CONTROL ? mov_from_cr : mov_from_dr;
  }
  return nullptr;
}

template <bool task>
Handler select_selector(Instruction& in, Op& op, bool loads) {
  op.src = in.register_number(0);
  op.dst = op.src;
  op.extra = static_cast<uint8_t>(in.size(0));
  if (loads)
    return in.is_memory(0) ? load_selector<task, Source::Memory> : load_selector<task, Source::Register>;
  return in.is_memory(0) ? store_selector<task, true> : store_selector<task, false>;
}

Handler pick(Instruction& in, Op& op) {
  op.extra = static_cast<uint8_t>(in.operand_size());
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_MOV:
      return select_control(in, op);
    case ZYDIS_MNEMONIC_HLT:
      return hlt;
    case ZYDIS_MNEMONIC_STI:
      return sti;
    case ZYDIS_MNEMONIC_CLTS:
      return clts;
    case ZYDIS_MNEMONIC_LMSW:
      op.src = in.register_number(0);
      return in.is_memory(0) ? lmsw<Source::Memory> : lmsw<Source::Register>;
    case ZYDIS_MNEMONIC_SMSW:
      op.dst = in.register_number(0);
      if (in.is_memory(0)) return smsw_memory;
      return by_wide_size(in.size(0), [&]<class T>(T) -> Handler { return smsw<T>; });
    case ZYDIS_MNEMONIC_RDMSR:
      return rdmsr;
    case ZYDIS_MNEMONIC_WRMSR:
      return wrmsr;
    case ZYDIS_MNEMONIC_RDTSC:
      return rdtsc;
    case ZYDIS_MNEMONIC_RDPMC:
      return rdpmc;
    case ZYDIS_MNEMONIC_CPUID:
      return cpuid_op;
    case ZYDIS_MNEMONIC_INVLPG:
    case ZYDIS_MNEMONIC_INVD:
    case ZYDIS_MNEMONIC_WBINVD:
      return privileged_nothing;
    case ZYDIS_MNEMONIC_LGDT:
      return load_table<true>;
    case ZYDIS_MNEMONIC_LIDT:
      return load_table<false>;
    case ZYDIS_MNEMONIC_SGDT:
      return store_table<true>;
    case ZYDIS_MNEMONIC_SIDT:
      return store_table<false>;
    case ZYDIS_MNEMONIC_LLDT:
      return select_selector<false>(in, op, true);
    case ZYDIS_MNEMONIC_LTR:
      return select_selector<true>(in, op, true);
    case ZYDIS_MNEMONIC_SLDT:
      return select_selector<false>(in, op, false);
    case ZYDIS_MNEMONIC_STR:
      return select_selector<true>(in, op, false);
    case ZYDIS_MNEMONIC_SYSCALL:
      return syscall;
    case ZYDIS_MNEMONIC_SYSRET:
      return sysret;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_system(Instruction& in, Op& op) {
  // These two cannot make an interrupt deliverable.
  if (in.mnemonic() == ZYDIS_MNEMONIC_CLI) return cli;
  if (in.mnemonic() == ZYDIS_MNEMONIC_SWAPGS) return swapgs;
  const Handler handler = pick(in, op);
  if (handler != nullptr) in.ends_block = true;
  return handler;
}

}  // namespace slalom::vm
