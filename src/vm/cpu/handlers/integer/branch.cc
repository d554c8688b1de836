// Near jumps, calls and returns, loops, software interrupts.
#include "vm/cpu/condition.h"
#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/handlers/integer/stack.h"
#include "vm/cpu/instruction.h"
#include "vm/cpu/transfer.h"

namespace slalom::vm {
namespace {

// op.immediate: the target, relative to the start of the block. op.extra: the target lies within the page.
template <unsigned code>
const Op* jcc(Cpu& cpu, const Op* op) {
  if (cpu.flags.condition<code>())
    return jump_near(cpu, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate), cpu.block->taken);
  return jump_near(cpu, next_rip(cpu, op), cpu.block->fallthrough);
}

template <unsigned code>
const Op* jcc_far(Cpu& cpu, const Op* op) {
  if (cpu.flags.condition<code>()) return jump_far(cpu, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
  return jump_near(cpu, next_rip(cpu, op), cpu.block->fallthrough);
}

// For a jump at the end of its page: a link to the next page could outlive its target.
template <unsigned code>
const Op* jcc_off_page(Cpu& cpu, const Op* op) {
  if (cpu.flags.condition<code>()) return jump_to(cpu, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
  return jump_to(cpu, next_rip(cpu, op));
}

const Op* jmp(Cpu& cpu, const Op* op) {
  return jump_near(cpu, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate), cpu.block->taken);
}
const Op* jmp_far_page(Cpu& cpu, const Op* op) {
  return jump_far(cpu, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
}

template <Source source>
const Op* jmp_indirect64(Cpu& cpu, const Op* op) {
  uint64_t target;
  if (!load_source<uint64_t, source>(cpu, op, target)) return stop(cpu, op);
  if (!is_canonical(target)) return raise(cpu, op, kProtection, 0);
  return jump_far(cpu, target);
}

const Op* call64(Cpu& cpu, const Op* op) {
  const uint64_t sp = cpu.gpr(kRsp) - 8;
  if (!store(cpu, op, sp, next_rip(cpu, op))) return stop_at_stack(cpu, op);
  cpu.gpr(kRsp) = sp;
  expect_return(cpu, next_rip(cpu, op));
  return jump_far(cpu, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
}

template <Source source>
const Op* call_indirect64(Cpu& cpu, const Op* op) {
  uint64_t target;
  if (!load_source<uint64_t, source>(cpu, op, target)) return stop(cpu, op);
  const uint64_t sp = cpu.gpr(kRsp) - 8;
  if (!store(cpu, op, sp, next_rip(cpu, op))) return stop_at_stack(cpu, op);
  if (!is_canonical(target)) return raise(cpu, op, kProtection, 0);
  cpu.gpr(kRsp) = sp;
  expect_return(cpu, next_rip(cpu, op));
  return jump_far(cpu, target);
}

const Op* ret64(Cpu& cpu, const Op* op) {
  uint64_t target;
  if (!load(cpu, op, cpu.gpr(kRsp), target)) return stop_at_stack(cpu, op);
  if (!is_canonical(target)) return raise(cpu, op, kProtection, 0);
  cpu.gpr(kRsp) += 8 + static_cast<uint64_t>(op->immediate);
  return return_to(cpu, target);
}

// The rest is for 16-bit and 32-bit code. op.extra: operand size in bytes.
bool target_fits(Cpu& cpu, uint64_t target) {
  return target <= cpu.regs.segments[kCs].limit || cpu.raise(kProtection, 0);
}

uint64_t wrap(const Op* op, uint64_t target) {
  return op->extra == 2 ? static_cast<uint16_t>(target) : static_cast<uint32_t>(target);
}

const Op* jump_legacy(Cpu& cpu, const Op* op, uint64_t target) {
  target = wrap(op, target);
  if (!target_fits(cpu, target)) return stop(cpu, op);
  return jump_to(cpu, target);
}

template <unsigned code>
const Op* jcc_legacy(Cpu& cpu, const Op* op) {
  if (cpu.flags.condition<code>())
    return jump_legacy(cpu, op, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
  return jump_near(cpu, next_rip(cpu, op), cpu.block->fallthrough);
}

template <unsigned code>
const Op* jcc_legacy_off_page(Cpu& cpu, const Op* op) {
  if (cpu.flags.condition<code>())
    return jump_legacy(cpu, op, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
  return jump_to(cpu, next_rip(cpu, op));
}

const Op* jmp_legacy(Cpu& cpu, const Op* op) {
  return jump_legacy(cpu, op, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
}

template <Source source>
bool load_target(Cpu& cpu, const Op* op, uint64_t& target) {
  if (op->extra == 2) {
    uint16_t value;
    if (!load_source<uint16_t, source>(cpu, op, value)) return false;
    target = value;
  } else {
    uint32_t value;
    if (!load_source<uint32_t, source>(cpu, op, value)) return false;
    target = value;
  }
  return true;
}

template <Source source>
const Op* jmp_indirect_legacy(Cpu& cpu, const Op* op) {
  uint64_t target;
  if (!load_target<source>(cpu, op, target)) return stop(cpu, op);
  target = wrap(op, target);
  if (!target_fits(cpu, target)) return stop(cpu, op);
  return leave(cpu, target);
}

const Op* call_to(Cpu& cpu, const Op* op, uint64_t target) {
  target = wrap(op, target);
  if (!target_fits(cpu, target)) return stop(cpu, op);
  Stack stack(cpu);
  if (!stack.push(op, op->extra, next_rip(cpu, op))) return stop(cpu, op);
  stack.commit();
  return leave(cpu, target);
}

const Op* call_legacy(Cpu& cpu, const Op* op) {
  return call_to(cpu, op, cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate));
}

template <Source source>
const Op* call_indirect_legacy(Cpu& cpu, const Op* op) {
  uint64_t target;
  if (!load_target<source>(cpu, op, target)) return stop(cpu, op);
  return call_to(cpu, op, target);
}

const Op* ret_legacy(Cpu& cpu, const Op* op) {
  Stack stack(cpu);
  uint64_t target;
  if (!stack.pop(op, op->extra, target)) return stop(cpu, op);
  if (!target_fits(cpu, target)) return stop(cpu, op);
  stack.skip(static_cast<uint64_t>(op->immediate));
  stack.commit();
  return leave(cpu, target);
}

enum class Loop : uint8_t { Always, WhileZero, WhileNotZero, IfCounterZero };

template <class Counter, Loop loop>
const Op* count_down(Cpu& cpu, const Op* op) {
  const Counter old = get<Counter>(cpu, kRcx);
  const Counter count = loop == Loop::IfCounterZero ? old : static_cast<Counter>(old - 1);
  bool taken = count != 0;
  if constexpr (loop == Loop::IfCounterZero) taken = count == 0;
  if constexpr (loop == Loop::WhileZero) taken = taken && cpu.flags.zero();
  if constexpr (loop == Loop::WhileNotZero) taken = taken && !cpu.flags.zero();
  uint64_t target = taken ? cpu.gpr(kRip) + static_cast<uint64_t>(op->immediate) : next_rip(cpu, op);
  if (op->extra != 8) {
    if (taken) target = wrap(op, target);
    if (!target_fits(cpu, target)) return stop(cpu, op);
  }
  if constexpr (loop != Loop::IfCounterZero) set<Counter>(cpu, kRcx, count);
  return jump_to(cpu, target);
}

template <Loop loop>
Handler select_loop(Instruction& in) {
  switch (in.address_size()) {
    case 2:
      return count_down<uint16_t, loop>;
    case 4:
      return count_down<uint32_t, loop>;
    default:
      return count_down<uint64_t, loop>;
  }
}

const Op* software_interrupt(Cpu& cpu, const Op* op) {
  if (cpu.vm86() && ((cpu.regs.rflags >> 12) & 3) < 3 && op->extra != 0)
    return raise(cpu, op, kProtection, 0);
  if (!cpu.interrupt(static_cast<uint8_t>(op->immediate), true, false, 0, next_rip(cpu, op)))
    return stop(cpu, op);
  cpu.tell({.kind = CpuEvent::Kind::Interrupt,
            .pc = cpu.gpr(kRip),
            .number = static_cast<uint64_t>(op->immediate)});
  return leave_for_interrupts(cpu, cpu.gpr(kRip));
}

// The lower bound is followed by the upper bound. Both are signed.
template <class T>
const Op* bound(Cpu& cpu, const Op* op) {
  const T index = static_cast<T>(get<std::make_unsigned_t<T>>(cpu, op->dst));
  T lower, upper;
  uint64_t address;
  if (!address_of<AccessKind::Read>(cpu, op, 2 * sizeof(T), address)) return stop(cpu, op);
  if (!load(cpu, op, address, lower)) return stop(cpu, op);
  if (index < lower) return raise(cpu, op, kBound);
  if (!load(cpu, op, address + sizeof(T), upper)) return stop(cpu, op);
  if (index > upper) return raise(cpu, op, kBound);
  return leave(cpu, next_rip(cpu, op));
}

// INT1 does not check the gate's privilege.
const Op* debug_trap(Cpu& cpu, const Op* op) {
  if (!cpu.interrupt(kDebug, false, false, 0, next_rip(cpu, op))) return stop(cpu, op);
  return leave_for_interrupts(cpu, cpu.gpr(kRip));
}

const Op* into(Cpu& cpu, const Op* op) {
  if (!cpu.flags.overflow()) return leave(cpu, next_rip(cpu, op));
  if (!cpu.interrupt(kOverflowTrap, true, false, 0, next_rip(cpu, op))) return stop(cpu, op);
  return leave_for_interrupts(cpu, cpu.gpr(kRip));
}

const Op* undefined(Cpu& cpu, const Op* op) {
  return raise(cpu, op, kInvalidOpcode);
}

Handler select_jump(Instruction& in, Op& op, int condition) {
  const bool is_long = in.mode.is_long();
  const uint64_t target = op.end() + static_cast<uint64_t>(in.immediate(0));
  op.immediate = static_cast<int64_t>(target);
  // The target's offset within the page. op.displacement, set by the decoder, is where the block starts in
  // its page.
  const uint64_t in_page = static_cast<uint64_t>(op.displacement) + target;
  const bool near = in_page < kPageSize;
  const bool next_in_page = static_cast<uint64_t>(op.displacement) + op.end() < kPageSize;
  op.displacement = 0;
  if (condition < 0) return is_long ? (near ? jmp : jmp_far_page) : jmp_legacy;
  return by_condition(static_cast<unsigned>(condition),
                      [&]<unsigned c>(std::integral_constant<unsigned, c>) -> Handler {
                        if (!next_in_page) return is_long ? jcc_off_page<c> : jcc_legacy_off_page<c>;
                        return is_long ? (near ? jcc<c> : jcc_far<c>) : jcc_legacy<c>;
                      });
}

}  // namespace

const Op* jump_and_link(Cpu& cpu, uint64_t rip, Block& from, Block*& link, uint64_t& link_rip) {
  JumpCache& jumps = *cpu.jumps;
  const JumpCache::Entry& entry = jumps.at(rip);
  // Addresses of the lower half change with every address space, so they are not linked.
  if (entry.tag == (rip ^ jumps.salt) && static_cast<int64_t>(rip) < 0) {
    if (jumps.generation == 0) jumps.generation = find_generation(cpu);
    from.begin_generation(jumps.generation);
    if (jumps.generation != 0) {
      link = entry.block;
      link_rip = rip;
    }
  }
  SLALOM_JUMP return jump_to(cpu, rip);
}

Handler select_branch(Instruction& in, Op& op) {
  const bool is_long = in.mode.is_long();
  op.extra = static_cast<uint8_t>(is_long ? 8 : in.operand_size());
  if (const int condition = jump_condition(in.mnemonic()); condition >= 0) {
    in.ends_block = true;
    return select_jump(in, op, condition);
  }
  const bool is_far = in.info.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL: {
      if (is_far) return nullptr;
      in.ends_block = true;
      const bool is_jump = in.mnemonic() == ZYDIS_MNEMONIC_JMP;
      if (in.is_immediate(0)) {
        if (is_jump) return select_jump(in, op, -1);
        op.immediate = static_cast<int64_t>(op.end() + static_cast<uint64_t>(in.immediate(0)));
        op.displacement = 0;
        return is_long ? call64 : call_legacy;
      }
      op.src = in.register_number(0);
      const bool memory = in.is_memory(0);
      if (is_jump) {
        if (is_long) return memory ? jmp_indirect64<Source::Memory> : jmp_indirect64<Source::Register>;
        return memory ? jmp_indirect_legacy<Source::Memory> : jmp_indirect_legacy<Source::Register>;
      }
      if (is_long) return memory ? call_indirect64<Source::Memory> : call_indirect64<Source::Register>;
      return memory ? call_indirect_legacy<Source::Memory> : call_indirect_legacy<Source::Register>;
    }
    case ZYDIS_MNEMONIC_RET:
      if (is_far) return nullptr;
      in.ends_block = true;
      op.immediate = in.visible() > 0 ? static_cast<uint16_t>(in.immediate(0)) : 0;
      return is_long ? ret64 : ret_legacy;
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
      in.ends_block = true;
      op.immediate = static_cast<int64_t>(op.end() + static_cast<uint64_t>(in.immediate(0)));
      if (in.mnemonic() == ZYDIS_MNEMONIC_LOOP) return select_loop<Loop::Always>(in);
      if (in.mnemonic() == ZYDIS_MNEMONIC_LOOPE) return select_loop<Loop::WhileZero>(in);
      if (in.mnemonic() == ZYDIS_MNEMONIC_LOOPNE) return select_loop<Loop::WhileNotZero>(in);
      return select_loop<Loop::IfCounterZero>(in);
    case ZYDIS_MNEMONIC_INT3:
      in.ends_block = true;
      op.immediate = kBreakpoint;
      op.extra = 0;
      return software_interrupt;
    case ZYDIS_MNEMONIC_INT1:
      in.ends_block = true;
      return debug_trap;
    case ZYDIS_MNEMONIC_INT:
      in.ends_block = true;
      op.immediate = in.immediate(0) & 0xff;
      op.extra = 1;
      return software_interrupt;
    case ZYDIS_MNEMONIC_BOUND:
      in.ends_block = true;
      op.dst = in.register_number(0);
      return in.size(0) == 2 ? bound<int16_t> : bound<int32_t>;
    case ZYDIS_MNEMONIC_INTO:
      in.ends_block = true;
      return into;
    case ZYDIS_MNEMONIC_RSM:  // there is no system management mode to return from
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
      in.ends_block = true;
      return undefined;
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
