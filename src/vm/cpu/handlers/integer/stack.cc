// push, pop and other stack instructions.
#include "vm/cpu/handlers/integer/stack.h"

#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {

Stack::Stack(Cpu& cpu, const Segment& segment, uint64_t pointer, unsigned privilege, bool is_long)
    : cpu_(cpu),
      segment_(segment),
      pointer_(pointer),
      mask_(is_long         ? ~uint64_t{0}
            : segment.big() ? 0xffffffff
                            : 0xffff),
      privilege_(privilege),
      flat_(is_long) {}

bool Stack::linear(uint64_t offset, unsigned size, bool write, uint64_t& address) {
  if (flat_) {
    address = offset;
    return true;
  }
  const uint64_t last = offset + size - 1;
  bool inside;
  if (segment_.expands_down()) {
    inside = offset > segment_.limit && last <= (segment_.big() ? 0xffffffff : 0xffff) && last >= offset;
  } else {
    inside = (last <= segment_.limit && last >= offset) || segment_.limit == 0xffffffff;  // wraps at 4 GiB
  }
  if (!inside || (cpu_.protected_mode() && !cpu_.vm86() && write && !segment_.writable()))
    return cpu_.raise(kStackFault, 0);
  address = static_cast<uint32_t>(segment_.base + offset);
  return true;
}

bool Stack::push(const Op* op, unsigned size, uint64_t value) {
  const uint64_t pointer = (pointer_ - size) & mask_;
  uint64_t address = 0;
  if (!linear(pointer, size, true, address)) return false;
  std::memcpy(cpu_.buffer.data(), &value, 8);
  if (privilege_ != cpu_.cpl ? !store_system(cpu_, address, size, &value)
                             : !store_slow(cpu_, op, address, size)) {
    blame_stack(cpu_);
    return false;
  }
  pointer_ = (pointer_ & ~mask_) | pointer;
  return true;
}

bool Stack::pop(const Op* op, unsigned size, uint64_t& value) {
  uint64_t address = 0;
  if (!linear(pointer_ & mask_, size, false, address)) return false;
  if (!load_slow(cpu_, op, address, size)) {
    blame_stack(cpu_);
    return false;
  }
  value = 0;
  std::memcpy(&value, cpu_.buffer.data(), size);
  pointer_ = (pointer_ & ~mask_) | ((pointer_ + size) & mask_);
  return true;
}

void Stack::commit() {
  cpu_.gpr(kRsp) = (cpu_.gpr(kRsp) & ~mask_) | (pointer_ & mask_);
  if (mask_ == 0xffffffff) cpu_.gpr(kRsp) &= mask_;
}

namespace {

template <Source source>
const Op* push64(Cpu& cpu, const Op* op) {
  uint64_t value;
  if (!load_source<uint64_t, source>(cpu, op, value)) return stop(cpu, op);
  const uint64_t sp = cpu.gpr(kRsp) - 8;
  if (!store(cpu, op, sp, value)) return stop_at_stack(cpu, op);
  cpu.gpr(kRsp) = sp;
  NEXT;
}

const Op* pop64(Cpu& cpu, const Op* op) {
  uint64_t value;
  const uint64_t sp = cpu.gpr(kRsp);
  if (!load(cpu, op, sp, value)) return stop_at_stack(cpu, op);
  cpu.gpr(kRsp) = sp + 8;  // before the destination, which may be rsp itself
  cpu.gpr(op->dst) = value;
  NEXT;
}

const Op* leave64(Cpu& cpu, const Op* op) {
  uint64_t value;
  const uint64_t frame = cpu.gpr(kRbp);
  if (!load(cpu, op, frame, value)) return stop_at_stack(cpu, op);
  cpu.gpr(kRsp) = frame + 8;
  cpu.gpr(kRbp) = value;
  NEXT;
}

// All other forms use Stack and return to the run loop, since they would prevent NEXT from being a jump.
const Op* done(Cpu& cpu, const Op* op) {
  return leave(cpu, next_rip(cpu, op));
}

bool load_sized(Cpu& cpu, const Op* op, unsigned size, uint64_t& value) {
  uint64_t address = 0;
  if (!address_of<AccessKind::Read>(cpu, op, size, address) || !load_slow(cpu, op, address, size))
    return false;
  value = 0;
  std::memcpy(&value, cpu.buffer.data(), size);
  return true;
}

void set_sized(Cpu& cpu, unsigned reg, unsigned size, uint64_t value) {
  if (size == 2)
    set<uint16_t>(cpu, reg, static_cast<uint16_t>(value));
  else
    cpu.gpr(reg) = value;
}

template <Source source>
const Op* push_any(Cpu& cpu, const Op* op) {
  uint64_t value;
  if constexpr (source == Source::Memory) {
    if (!load_sized(cpu, op, op->extra, value)) return stop(cpu, op);
  } else {
    value = source == Source::Immediate ? static_cast<uint64_t>(op->immediate) : cpu.gpr(op->src);
  }
  Stack stack(cpu);
  if (!stack.push(op, op->extra, value)) return stop(cpu, op);
  stack.commit();
  return done(cpu, op);
}

const Op* pop_register(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  uint64_t value;
  if (!stack.pop(op, op->extra, value)) return stop(cpu, op);
  stack.commit();
  set_sized(cpu, op->dst, op->extra, value);
  return done(cpu, op);
}

const Op* pop_memory(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  uint64_t value, address = 0;
  const uint64_t before = cpu.gpr(kRsp);
  if (!stack.pop(op, op->extra, value)) return stop(cpu, op);
  stack.commit();  // an address based on rsp uses the new value
  std::memcpy(cpu.buffer.data(), &value, 8);
  if (!address_of<AccessKind::Write>(cpu, op, op->extra, address)) {
    cpu.gpr(kRsp) = before;
    return stop(cpu, op);
  }
  std::memcpy(cpu.buffer.data(), &value, 8);
  if (!store_slow(cpu, op, address, op->extra)) {
    cpu.gpr(kRsp) = before;
    return stop(cpu, op);
  }
  return done(cpu, op);
}

const Op* push_all(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  const uint64_t sp = cpu.gpr(kRsp);
  for (unsigned i = 0; i < 8; ++i)
    if (!stack.push(op, op->extra, i == kRsp ? sp : cpu.gpr(i))) return stop(cpu, op);
  stack.commit();
  return done(cpu, op);
}

const Op* pop_all(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  uint64_t values[8];
  for (int i = 7; i >= 0; --i)
    if (!stack.pop(op, op->extra, values[i])) return stop(cpu, op);
  stack.commit();
  for (unsigned i = 0; i < 8; ++i)
    if (i != kRsp) set_sized(cpu, i, op->extra, values[i]);
  return done(cpu, op);
}

const Op* leave_any(Cpu& cpu, const Op* op) {
  Stack stack(cpu, cpu.regs.segments[kSs], cpu.gpr(kRbp), cpu.cpl, cpu.mode.is_long());
  uint64_t value;
  if (!stack.pop(op, op->extra, value)) return stop(cpu, op);
  stack.commit();
  set_sized(cpu, kRbp, op->extra, value);
  return done(cpu, op);
}

const Op* enter_frame(Cpu& cpu, const Op* op) {
  const unsigned size = op->extra;
  const unsigned levels = op->src & 31;
  Stack stack(cpu);
  if (!stack.push(op, size, cpu.gpr(kRbp))) return stop(cpu, op);
  const uint64_t frame = stack.pointer();
  if (levels > 0) {
    Stack outer(cpu, cpu.regs.segments[kSs], cpu.gpr(kRbp), cpu.cpl, cpu.mode.is_long());
    for (unsigned i = 1; i < levels; ++i) {
      uint64_t value;
      outer.skip(-uint64_t{i == 1 ? 1u : 2u} * size);  // below the one that was read before
      if (!outer.pop(op, size, value) || !stack.push(op, size, value)) return stop(cpu, op);
    }
    if (!stack.push(op, size, frame)) return stop(cpu, op);
  }
  stack.skip(-static_cast<uint64_t>(op->immediate));
  if (!check_writable(cpu, stack.pointer(), 1)) return stop(cpu, op);
  stack.commit();
  set_sized(cpu, kRbp, size, frame);
  return done(cpu, op);
}

const Op* push_flags(Cpu& cpu, const Op* op) {
  if (cpu.vm86() && ((cpu.regs.rflags >> 12) & 3) < 3) return raise(cpu, op, kProtection, 0);
  Stack stack(cpu);
  if (!stack.push(op, op->extra, cpu.rflags() & ~(flag::kVm86 | flag::kResume))) return stop(cpu, op);
  stack.commit();
  return done(cpu, op);
}

const Op* pop_flags(Cpu& cpu, const Op* op) {
  const unsigned iopl = (cpu.regs.rflags >> 12) & 3;
  if (cpu.vm86() && iopl < 3) return raise(cpu, op, kProtection, 0);
  Stack stack(cpu);
  uint64_t value;
  if (!stack.pop(op, op->extra, value)) return stop(cpu, op);
  stack.commit();
  uint64_t mask =
      flag::kArithmetic | flag::kTrap | flag::kDirection | flag::kNested | flag::kAlignment | flag::kId;
  if (cpu.cpl == 0) mask |= flag::kIopl;
  if (cpu.cpl <= iopl) mask |= flag::kInterrupt;
  if (op->extra == 2) mask &= 0xffff;
  cpu.set_rflags((cpu.rflags() & ~mask & ~flag::kResume) | (value & mask));
  return leave_for_interrupts(cpu, next_rip(cpu, op));
}

Handler select_push(Instruction& in, Op& op) {
  if (in.is_register(0) && ZydisRegisterGetClass(in.reg(0)) == ZYDIS_REGCLASS_SEGMENT) return nullptr;
  op.src = in.register_number(0);
  if (in.is_immediate(0)) op.immediate = in.immediate(0);
  if (op.extra == 8) {
    if (in.is_memory(0)) return push64<Source::Memory>;
    op.segment = kFlatStack;
    return in.is_immediate(0) ? push64<Source::Immediate> : push64<Source::Register>;
  }
  in.ends_block = true;
  if (in.is_memory(0)) return push_any<Source::Memory>;
  return in.is_immediate(0) ? push_any<Source::Immediate> : push_any<Source::Register>;
}

Handler select_pop(Instruction& in, Op& op) {
  if (in.is_register(0) && ZydisRegisterGetClass(in.reg(0)) == ZYDIS_REGCLASS_SEGMENT) return nullptr;
  op.dst = in.register_number(0);
  if (in.is_memory(0)) {
    in.ends_block = true;
    return pop_memory;
  }
  if (op.extra == 8) {
    op.segment = kFlatStack;
    return pop64;
  }
  in.ends_block = true;
  return pop_register;
}

}  // namespace

Handler select_stack(Instruction& in, Op& op) {
  op.extra = static_cast<uint8_t>(in.operand_size());
  // In 64-bit code these have no 32-bit form.
  if (in.mode.is_long() && op.extra == 4) op.extra = 8;
  const auto ending = [&](Handler handler) {
    in.ends_block = true;
    return handler;
  };
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_PUSH:
      return select_push(in, op);
    case ZYDIS_MNEMONIC_POP:
      return select_pop(in, op);
    case ZYDIS_MNEMONIC_LEAVE:
      if (op.extra == 8) {
        op.segment = kFlatStack;
        return leave64;
      }
      return ending(leave_any);
    case ZYDIS_MNEMONIC_ENTER:
      op.immediate = in.immediate(0) & 0xffff;
      op.src = static_cast<uint8_t>(in.immediate(1));
      return ending(enter_frame);
    case ZYDIS_MNEMONIC_PUSHA:
    case ZYDIS_MNEMONIC_PUSHAD:
      return ending(push_all);
    case ZYDIS_MNEMONIC_POPA:
    case ZYDIS_MNEMONIC_POPAD:
      return ending(pop_all);
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ:
      return ending(push_flags);
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
      return ending(pop_flags);
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
