// Data movement: mov, movzx, movsx, xchg, lea, cmov, setcc, bswap and similar instructions.
#include "vm/cpu/condition.h"
#include "vm/cpu/handler.h"
#include "vm/cpu/handlers/forms.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

template <class T, Source source>
const Op* to_register(Cpu& cpu, const Op* op) {
  T value;
  if (!load_source<T, source>(cpu, op, value)) return stop(cpu, op);
  set<T>(cpu, op->dst, value);
  NEXT;
}

template <class T, Source source>
const Op* to_memory(Cpu& cpu, const Op* op) {
  const T value = source == Source::Immediate ? static_cast<T>(op->immediate) : get<T>(cpu, op->src);
  if (!store_operand(cpu, op, value)) return stop(cpu, op);
  NEXT;
}

// The immediate is the whole address.
template <class T, bool loads>
const Op* absolute(Cpu& cpu, const Op* op) {
  uint64_t address = static_cast<uint64_t>(op->immediate);
  if (op->segment < kLegacySegments)
    address += cpu.segment_base[op->segment];
  else if (legacy_address(cpu, op, sizeof(T), loads ? AccessKind::Read : AccessKind::Write, address))
    address = cpu.linear;
  else
    return stop(cpu, op);
  if constexpr (loads) {
    T value;
    if (!load(cpu, op, address, value)) return stop(cpu, op);
    set<T>(cpu, kRax, value);
  } else {
    if (!store(cpu, op, address, get<T>(cpu, kRax))) return stop(cpu, op);
  }
  NEXT;
}

template <class To, class From, Source source>
const Op* extend(Cpu& cpu, const Op* op) {
  using Unsigned = std::make_unsigned_t<From>;
  Unsigned value;
  if (!load_source<Unsigned, source>(cpu, op, value)) return stop(cpu, op);
  set<To>(cpu, op->dst, static_cast<To>(static_cast<From>(value)));
  NEXT;
}

template <class T>
const Op* lea(Cpu& cpu, const Op* op) {
  uint64_t offset = offset_of(cpu, op);
  if (op->bits & Op::kAddress32) offset = static_cast<uint32_t>(offset);
  if (op->bits & Op::kAddress16) offset = static_cast<uint16_t>(offset);
  if (op->bits & Op::kFar) offset += uint64_t{1} << 32;
  set<T>(cpu, op->dst, static_cast<T>(offset));
  NEXT;
}

template <class T>
const Op* xchg_registers(Cpu& cpu, const Op* op) {
  const T a = get<T>(cpu, op->dst), b = get<T>(cpu, op->src);
  set<T>(cpu, op->dst, b);
  set<T>(cpu, op->src, a);
  NEXT;
}

template <class T>
const Op* xchg_memory(Cpu& cpu, const Op* op) {
  uint64_t address;
  T found;
  if (!address_of<AccessKind::Write>(cpu, op, sizeof(T), address)) return stop(cpu, op);
  if (!load_for_write(cpu, op, address, found)) return stop(cpu, op);
  const T given = get<T>(cpu, op->src);
  if (!store(cpu, op, address, given)) return stop(cpu, op);
  set<T>(cpu, op->src, found);
  if (found == given && cpu.fails_again(address)) return end_turn(cpu, op);
  NEXT;
}

template <class T, Source source, unsigned code>
const Op* cmov(Cpu& cpu, const Op* op) {
  T value;
  if (!load_source<T, source>(cpu, op, value)) return stop(cpu, op);
  // A 32-bit form clears the upper half even if it does not move.
  set<T>(cpu, op->dst, cpu.flags.condition<code>() ? value : get<T>(cpu, op->dst));
  NEXT;
}

template <bool memory, unsigned code>
const Op* setcc(Cpu& cpu, const Op* op) {
  const uint8_t value = cpu.flags.condition<code>();
  if constexpr (memory) {
    if (!store_operand(cpu, op, value)) return stop(cpu, op);
  } else {
    set<uint8_t>(cpu, op->dst, value);
  }
  NEXT;
}

template <class T>
const Op* bswap(Cpu& cpu, const Op* op) {
  if constexpr (sizeof(T) == 8)
    set<T>(cpu, op->dst, __builtin_bswap64(get<T>(cpu, op->dst)));
  else if constexpr (sizeof(T) == 4)
    set<T>(cpu, op->dst, __builtin_bswap32(get<T>(cpu, op->dst)));
  else
    set<T>(cpu, op->dst, 0);  // undefined; CPUs of both vendors return zero
  NEXT;
}

const Op* nop(Cpu& cpu, const Op* op) {
  NEXT;
}

// A NOP that no compiler generates: `nopl kHypercallMark(%rax,%rax,1)`. Hypercalls answers it before the next
// instruction (see guest/slalom.h).
constexpr int64_t kHypercallMark = 0x6c616c73;

const Op* hypercall(Cpu& cpu, const Op* op) {
  cpu.happened |= Cpu::kHypercall;
  return leave_for_interrupts(cpu, next_rip(cpu, op));
}

bool is_hypercall(const Instruction& in) {
  return in.info.opcode_map == ZYDIS_OPCODE_MAP_0F && in.info.opcode == 0x1f && in.visible() > 0 &&
         in.is_memory(0) && in.operand(0).mem.disp.has_displacement &&
         in.operand(0).mem.disp.value == kHypercallMark;
}

// Ends the block, so that a CPU that waits in a loop gives way.
const Op* pause(Cpu& cpu, const Op* op) {
  cpu.paused = true;
  cpu.tell({.kind = CpuEvent::Kind::Pause, .pc = cpu.gpr(kRip) + op->offset});
  return leave(cpu, next_rip(cpu, op));
}

const Op* lahf(Cpu& cpu, const Op* op) {
  set<uint8_t>(cpu, kRax * 8 + 1, static_cast<uint8_t>((cpu.flags.arithmetic() & 0xd5) | flag::kFixed));
  NEXT;
}

const Op* sahf(Cpu& cpu, const Op* op) {
  const uint64_t overflow = cpu.flags.overflow() ? flag::kOverflow : 0;
  cpu.flags.set_arithmetic((get<uint8_t>(cpu, kRax * 8 + 1) & 0xd5) | overflow);
  NEXT;
}

enum class Carry : uint8_t { Clear, Set, Complement };
template <Carry carry>
const Op* change_carry(Cpu& cpu, const Op* op) {
  cpu.flags.change_carry(carry == Carry::Set || (carry == Carry::Complement && !cpu.flags.carry()));
  NEXT;
}

template <bool value>
const Op* change_direction(Cpu& cpu, const Op* op) {
  if constexpr (value)
    cpu.regs.rflags |= flag::kDirection;
  else
    cpu.regs.rflags &= ~flag::kDirection;
  NEXT;
}

const Op* salc(Cpu& cpu, const Op* op) {
  set<uint8_t>(cpu, kRax, cpu.flags.carry() ? 0xff : 0);
  NEXT;
}

template <class T>
const Op* xlat(Cpu& cpu, const Op* op) {
  const uint64_t offset = static_cast<T>(get<T>(cpu, kRbx) + get<uint8_t>(cpu, kRax));
  uint64_t address = offset;
  if (op->segment < kLegacySegments)
    address += cpu.segment_base[op->segment];
  else if (legacy_address(cpu, op, 1, AccessKind::Read, offset))
    address = cpu.linear;
  else
    return stop(cpu, op);
  uint8_t value;
  if (!load(cpu, op, address, value)) return stop(cpu, op);
  set<uint8_t>(cpu, kRax, value);
  NEXT;
}

Handler select_mov(Instruction& in, Op& op) {
  if (in.is_register(0) && ZydisRegisterGetClass(in.reg(0)) == ZYDIS_REGCLASS_SEGMENT) return nullptr;
  if (in.is_register(1) && ZydisRegisterGetClass(in.reg(1)) == ZYDIS_REGCLASS_SEGMENT) return nullptr;
  const auto is_control = [&](unsigned i) {
    if (!in.is_register(i)) return false;
    const ZydisRegisterClass kind = ZydisRegisterGetClass(in.reg(i));
    return kind == ZYDIS_REGCLASS_CONTROL || kind == ZYDIS_REGCLASS_DEBUG;
  };
  if (is_control(0) || is_control(1)) return nullptr;
  op.dst = in.register_number(0);
  op.src = in.register_number(1);
  if (in.is_immediate(1)) op.immediate = in.immediate(1);
  const bool is_absolute =
      in.info.opcode >= 0xa0 && in.info.opcode <= 0xa3 && in.info.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
  if (is_absolute) {
    const unsigned memory = in.is_memory(0) ? 0 : 1;
    op.immediate = in.operand(memory).mem.disp.value;
    return by_size(in.size(0), [&]<class T>(T) -> Handler {
      return memory == 1 ? absolute<T, true> : absolute<T, false>;
    });
  }
  return by_size(in.size(0), [&]<class T>(T) -> Handler {
    if (in.is_memory(0))
      return in.is_immediate(1) ? to_memory<T, Source::Immediate> : to_memory<T, Source::Register>;
    if (in.is_memory(1)) return to_register<T, Source::Memory>;
    return in.is_immediate(1) ? to_register<T, Source::Immediate> : to_register<T, Source::Register>;
  });
}

template <class From>
Handler select_extend(Instruction& in, Op& op) {
  op.dst = in.register_number(0);
  op.src = in.register_number(1);
  return by_wide_size(in.size(0), [&]<class T>(T) -> Handler {
    return in.is_memory(1) ? extend<T, From, Source::Memory> : extend<T, From, Source::Register>;
  });
}

Handler select_xchg(Instruction& in, Op& op) {
  // Memory may be the first or the second operand.
  const unsigned memory = in.is_memory(1) ? 1 : 0;
  op.dst = in.register_number(memory);
  op.src = in.register_number(1 - memory);
  const bool has_memory = in.is_memory(memory);
  return by_size(in.size(0),
                 [&]<class T>(T) -> Handler { return has_memory ? xchg_memory<T> : xchg_registers<T>; });
}

Handler select_conditional(Instruction& in, Op& op) {
  const ZydisMnemonic mnemonic = in.mnemonic();
  op.dst = in.register_number(0);
  if (const int code = cmov_condition(mnemonic); code >= 0) {
    op.src = in.register_number(1);
    return by_wide_size(in.size(0), [&]<class T>(T) -> Handler {
      return by_condition(
          static_cast<unsigned>(code), [&]<unsigned c>(std::integral_constant<unsigned, c>) -> Handler {
            return in.is_memory(1) ? cmov<T, Source::Memory, c> : cmov<T, Source::Register, c>;
          });
    });
  }
  if (const int code = set_condition(mnemonic); code >= 0)
    return by_condition(static_cast<unsigned>(code),
                        [&]<unsigned c>(std::integral_constant<unsigned, c>) -> Handler {
                          return in.is_memory(0) ? setcc<true, c> : setcc<false, c>;
                        });
  return nullptr;
}

}  // namespace

Handler select_move(Instruction& in, Op& op) {
  switch (in.mnemonic()) {
    case ZYDIS_MNEMONIC_MOV:
      return select_mov(in, op);
    case ZYDIS_MNEMONIC_MOVZX:
      return in.size(1) == 1 ? select_extend<uint8_t>(in, op) : select_extend<uint16_t>(in, op);
    case ZYDIS_MNEMONIC_MOVSX:
      return in.size(1) == 1 ? select_extend<int8_t>(in, op) : select_extend<int16_t>(in, op);
    case ZYDIS_MNEMONIC_MOVSXD:
      // With a 16-bit destination only 16 bits are read, although Zydis reports more.
      return in.size(0) == 2 ? select_extend<int16_t>(in, op) : select_extend<int32_t>(in, op);
    case ZYDIS_MNEMONIC_LEA:
      op.dst = in.register_number(0);
      return by_wide_size(in.size(0), [&]<class T>(T) -> Handler { return lea<T>; });
    case ZYDIS_MNEMONIC_XCHG:
      return select_xchg(in, op);
    case ZYDIS_MNEMONIC_BSWAP:
      op.dst = in.register_number(0);
      return by_wide_size(in.size(0), [&]<class T>(T) -> Handler { return bswap<T>; });
    case ZYDIS_MNEMONIC_NOP:
      if (is_hypercall(in)) {
        in.ends_block = true;
        return hypercall;
      }
      return nop;
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_ENDBR32:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHW:
      return nop;
    case ZYDIS_MNEMONIC_PAUSE:
      in.ends_block = true;
      return pause;
    case ZYDIS_MNEMONIC_LAHF:
      return in.mode.is_long() ? nullptr : lahf;  // a separate feature in 64-bit code
    case ZYDIS_MNEMONIC_SAHF:
      return in.mode.is_long() ? nullptr : sahf;
    case ZYDIS_MNEMONIC_CLC:
      return change_carry<Carry::Clear>;
    case ZYDIS_MNEMONIC_STC:
      return change_carry<Carry::Set>;
    case ZYDIS_MNEMONIC_CMC:
      return change_carry<Carry::Complement>;
    case ZYDIS_MNEMONIC_CLD:
      return change_direction<false>;
    case ZYDIS_MNEMONIC_STD:
      return change_direction<true>;
    case ZYDIS_MNEMONIC_SALC:
      return salc;
    case ZYDIS_MNEMONIC_XLAT:
      switch (in.address_size()) {
        case 2:
          return xlat<uint16_t>;
        case 4:
          return xlat<uint32_t>;
        default:
          return xlat<uint64_t>;
      }
    default:
      return select_conditional(in, op);
  }
}

}  // namespace slalom::vm
