// Segment registers, far transfers, descriptor inspection. All of it returns to the run loop.
#include "vm/cpu/descriptor.h"
#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/integer/stack.h"
#include "vm/cpu/instruction.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {
namespace {

const Op* done(Cpu& cpu, const Op* op) {
  return leave(cpu, next_rip(cpu, op));
}

bool load_sized(Cpu& cpu, const Op* op, uint64_t address, unsigned size, uint64_t& value) {
  if (!load_slow(cpu, op, address, size)) return false;
  value = 0;
  std::memcpy(&value, cpu.buffer.data(), size);
  return true;
}

// After a write to SS, one instruction runs before interrupts are delivered and before a single step traps.
const Op* loaded(Cpu& cpu, const Op* op, SegmentName name) {
  if (name == kSs) cpu.regs.interrupt_shadow = cpu.step_waits = true;
  return leave_for_interrupts(cpu, next_rip(cpu, op));
}

template <Source source>
const Op* mov_to_segment(Cpu& cpu, const Op* op) {
  uint16_t selector;
  if (!load_source<uint16_t, source>(cpu, op, selector)) return stop(cpu, op);
  const auto name = static_cast<SegmentName>(op->dst);
  if (!load_segment(cpu, name, selector)) return stop(cpu, op);
  return loaded(cpu, op, name);
}

const Op* mov_from_segment(Cpu& cpu, const Op* op) {
  const uint16_t selector = cpu.regs.segments[op->src].selector;
  if (op->extra == 2)
    set<uint16_t>(cpu, op->dst, selector);
  else
    cpu.gpr(op->dst) = selector;
  return done(cpu, op);
}

const Op* mov_segment_to_memory(Cpu& cpu, const Op* op) {
  if (!store_operand<uint16_t>(cpu, op, cpu.regs.segments[op->src].selector)) return stop(cpu, op);
  return done(cpu, op);
}

const Op* push_segment(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  // A 32-bit push writes only the selector's half, as on Intel's CPUs.
  const unsigned size = op->extra == 4 ? 2 : op->extra;
  stack.skip(-uint64_t{op->extra - size});
  if (!stack.push(op, size, cpu.regs.segments[op->src].selector)) return stop(cpu, op);
  stack.commit();
  return done(cpu, op);
}

const Op* pop_segment(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  uint64_t selector;
  if (!stack.pop(op, 2, selector)) return stop(cpu, op);
  stack.skip(op->extra - 2u);
  const auto name = static_cast<SegmentName>(op->dst);
  if (!load_segment(cpu, name, static_cast<uint16_t>(selector))) return stop(cpu, op);
  stack.commit();
  return loaded(cpu, op, name);
}

bool load_far_pointer(Cpu& cpu, const Op* op, uint64_t& offset, uint16_t& selector) {
  uint64_t address, value;
  if (!address_of<AccessKind::Read>(cpu, op, op->extra + 2u, address)) return false;
  if (!load_sized(cpu, op, address, op->extra, offset)) return false;
  if (!load_sized(cpu, op, address + op->extra, 2, value)) return false;
  selector = static_cast<uint16_t>(value);
  return true;
}

// LDS, LES, LSS, LFS, LGS: op.src is the segment.
const Op* load_pointer(Cpu& cpu, const Op* op) {
  uint64_t offset;
  uint16_t selector;
  if (!load_far_pointer(cpu, op, offset, selector)) return stop(cpu, op);
  const auto name = static_cast<SegmentName>(op->src);
  if (!load_segment(cpu, name, selector)) return stop(cpu, op);
  if (op->extra == 2)
    set<uint16_t>(cpu, op->dst, static_cast<uint16_t>(offset));
  else
    cpu.gpr(op->dst) = offset;
  return loaded(cpu, op, name);
}

template <bool memory, bool call>
const Op* far_transfer(Cpu& cpu, const Op* op) {
  uint64_t offset = static_cast<uint64_t>(op->immediate);
  uint16_t selector = static_cast<uint16_t>(op->displacement);
  if (memory && !load_far_pointer(cpu, op, offset, selector)) return stop(cpu, op);
  if (call ? !far_call(cpu, op, selector, offset, op->extra)
           : !far_jump(cpu, op, selector, offset, op->extra))
    return stop(cpu, op);
  return leave_for_interrupts(cpu, cpu.gpr(kRip));
}

const Op* return_far(Cpu& cpu, const Op* op) {
  if (!far_return(cpu, op, op->extra, static_cast<uint64_t>(op->immediate))) return stop(cpu, op);
  return leave_for_interrupts(cpu, cpu.gpr(kRip));
}

const Op* iret(Cpu& cpu, const Op* op) {
  const uint64_t from = cpu.gpr(kRip) + op->offset;
  if (!interrupt_return(cpu, op, op->extra)) return stop(cpu, op);
  cpu.happened |= Cpu::kIret;
  cpu.tell(
      {.kind = CpuEvent::Kind::InterruptReturn, .pc = cpu.gpr(kRip), .number = from, .value = cpu.gpr(kRax)});
  return leave_for_interrupts(cpu, cpu.gpr(kRip));
}

enum class Inspect : uint8_t { Lar, Lsl, Verr, Verw };

// Returns true if the descriptor exists, is of a kind that may be inspected, and is visible with the current
// privilege.
bool visible(Cpu& cpu, Inspect inspect, uint16_t selector, Descriptor& descriptor) {
  if ((selector & 0xfffc) == 0) return false;
  if (!read_descriptor(cpu, selector, kProtection, descriptor)) return false;
  const Segment segment = descriptor.segment(selector);
  if (segment.is_system()) {
    const unsigned type = segment.type();
    const bool state = type == 2 || type == 9 || type == 11 || (!cpu.long_mode() && (type == 1 || type == 3));
    const bool gate = type == 12 || (!cpu.long_mode() && (type == 4 || type == 5));
    if (inspect == Inspect::Lar ? !(state || gate) : inspect == Inspect::Lsl ? !state : true) return false;
  }
  if (!segment.conforming() && (segment.dpl() < cpu.cpl || segment.dpl() < (selector & 3u))) return false;
  if (inspect == Inspect::Verr) return segment.readable();
  if (inspect == Inspect::Verw) return segment.writable() && !segment.is_code();
  return true;
}

template <Inspect inspect, Source source>
const Op* inspect_descriptor(Cpu& cpu, const Op* op) {
  if (!cpu.protected_mode() || cpu.vm86()) return raise(cpu, op, kInvalidOpcode);
  uint16_t selector;
  if (!load_source<uint16_t, source>(cpu, op, selector)) return stop(cpu, op);
  Descriptor descriptor;
  cpu.fault = Fault{};
  const bool found = visible(cpu, inspect, selector, descriptor);
  if (!found && cpu.fault.vector == kPageFault) return stop(cpu, op);
  if (found && (inspect == Inspect::Lar || inspect == Inspect::Lsl)) {
    const uint64_t value =
        inspect == Inspect::Lar ? (descriptor.low >> 32) & 0xffff00 : descriptor.segment(0).limit;
    if (op->extra == 2)
      set<uint16_t>(cpu, op->dst, static_cast<uint16_t>(value));
    else
      cpu.gpr(op->dst) = value;
  }
  cpu.flags.set_arithmetic((cpu.flags.arithmetic() & ~flag::kZeroFlag) | (found ? flag::kZeroFlag : 0));
  return done(cpu, op);
}

template <Source source>
const Op* arpl(Cpu& cpu, const Op* op) {
  if (!cpu.protected_mode() || cpu.vm86()) return raise(cpu, op, kInvalidOpcode);
  uint16_t value;
  if constexpr (source == Source::Memory) {
    if (!load_operand(cpu, op, value)) return stop(cpu, op);
  } else {
    value = get<uint16_t>(cpu, op->dst);
  }
  const unsigned privilege = cpu.gpr(op->src) & 3;
  const bool raised = (value & 3u) < privilege;
  if (raised) value = static_cast<uint16_t>((value & ~3u) | privilege);
  if constexpr (source == Source::Memory) {
    if (raised && !store_operand(cpu, op, value)) return stop(cpu, op);  // otherwise nothing is written
  } else {
    set<uint16_t>(cpu, op->dst, value);
  }
  cpu.flags.set_arithmetic((cpu.flags.arithmetic() & ~flag::kZeroFlag) | (raised ? flag::kZeroFlag : 0));
  return done(cpu, op);
}

int segment_number(ZydisRegister reg) {
  switch (reg) {
    case ZYDIS_REGISTER_ES:
      return kEs;
    case ZYDIS_REGISTER_CS:
      return kCs;
    case ZYDIS_REGISTER_SS:
      return kSs;
    case ZYDIS_REGISTER_DS:
      return kDs;
    case ZYDIS_REGISTER_FS:
      return kFs;
    case ZYDIS_REGISTER_GS:
      return kGs;
    default:
      return -1;
  }
}

int operand_segment(const Instruction& in, unsigned i) {
  return in.is_register(i) ? segment_number(in.reg(i)) : -1;
}

template <Inspect inspect>
Handler select_inspect(Instruction& in, Op& op) {
  const unsigned source = inspect == Inspect::Lar || inspect == Inspect::Lsl ? 1 : 0;
  op.src = in.register_number(source);
  op.dst = in.register_number(0);
  return in.is_memory(source) ? inspect_descriptor<inspect, Source::Memory>
                              : inspect_descriptor<inspect, Source::Register>;
}

Handler select_pointer(Instruction& in, Op& op, SegmentName segment) {
  op.dst = in.register_number(0);
  op.src = segment;
  return load_pointer;
}

Handler select_transfer(Instruction& in, Op& op, bool call) {
  if (in.is_memory(0)) return call ? far_transfer<true, true> : far_transfer<true, false>;
  op.displacement = static_cast<int32_t>(in.operand(0).ptr.segment);
  op.immediate = static_cast<int64_t>(in.operand(0).ptr.offset);
  return call ? far_transfer<false, true> : far_transfer<false, false>;
}

Handler pick(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_MOV: {
      if (const int to = operand_segment(in, 0); to >= 0) {
        if (to == kCs) return nullptr;
        op.dst = static_cast<uint8_t>(to);
        op.src = in.register_number(1);
        return in.is_memory(1) ? mov_to_segment<Source::Memory> : mov_to_segment<Source::Register>;
      }
      if (const int from = operand_segment(in, 1); from >= 0) {
        op.src = static_cast<uint8_t>(from);
        op.dst = in.register_number(0);
        return in.is_memory(0) ? mov_segment_to_memory : mov_from_segment;
      }
      return nullptr;
    }
    case ZYDIS_MNEMONIC_PUSH:
      if (const int from = operand_segment(in, 0); from >= 0) {
        op.src = static_cast<uint8_t>(from);
        if (in.mode.is_long() && op.extra == 4) op.extra = 8;
        return push_segment;
      }
      return nullptr;
    case ZYDIS_MNEMONIC_POP:
      if (const int to = operand_segment(in, 0); to >= 0) {
        op.dst = static_cast<uint8_t>(to);
        if (in.mode.is_long() && op.extra == 4) op.extra = 8;
        return pop_segment;
      }
      return nullptr;
    case ZYDIS_MNEMONIC_LDS:
      return select_pointer(in, op, kDs);
    case ZYDIS_MNEMONIC_LES:
      return select_pointer(in, op, kEs);
    case ZYDIS_MNEMONIC_LSS:
      return select_pointer(in, op, kSs);
    case ZYDIS_MNEMONIC_LFS:
      return select_pointer(in, op, kFs);
    case ZYDIS_MNEMONIC_LGS:
      return select_pointer(in, op, kGs);
    case ZYDIS_MNEMONIC_JMP:
      return select_transfer(in, op, false);
    case ZYDIS_MNEMONIC_CALL:
      return select_transfer(in, op, true);
    case ZYDIS_MNEMONIC_RET:
      op.immediate = in.visible() > 0 ? static_cast<uint16_t>(in.immediate(0)) : 0;
      return return_far;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
      return iret;
    case ZYDIS_MNEMONIC_LAR:
      return select_inspect<Inspect::Lar>(in, op);
    case ZYDIS_MNEMONIC_LSL:
      return select_inspect<Inspect::Lsl>(in, op);
    case ZYDIS_MNEMONIC_VERR:
      return select_inspect<Inspect::Verr>(in, op);
    case ZYDIS_MNEMONIC_VERW:
      return select_inspect<Inspect::Verw>(in, op);
    case ZYDIS_MNEMONIC_ARPL:
      op.dst = in.register_number(0);
      op.src = in.register_number(1);
      return in.is_memory(0) ? arpl<Source::Memory> : arpl<Source::Register>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler select_segment(Instruction& in, Op& op) {
  op.extra = static_cast<uint8_t>(in.operand_size());
  const Handler handler = pick(in, op);
  if (handler != nullptr) in.ends_block = true;
  return handler;
}

}  // namespace slalom::vm
