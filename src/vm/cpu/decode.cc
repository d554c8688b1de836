// Turns bytes into ops: Zydis decodes the instruction, and a family of handlers selects the handler.
#include <algorithm>

#include "vm/cpu/blocks.h"
#include "vm/cpu/handler.h"
#include "vm/cpu/instruction.h"

namespace slalom::vm {
namespace {

const ZydisDecoder& decoder(CodeMode mode) {
  static const std::array<ZydisDecoder, 3> decoders = [] {
    std::array<ZydisDecoder, 3> all;
    ZydisDecoderInit(&all[CodeMode::k16], ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16);
    ZydisDecoderInit(&all[CodeMode::k32], ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
    ZydisDecoderInit(&all[CodeMode::k64], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    // Extensions that CPUID does not advertise must not change the meaning of other instructions.
    for (ZydisDecoder& one : all) {
      ZydisDecoderEnableMode(&one, ZYDIS_DECODER_MODE_CET, ZYAN_FALSE);
      ZydisDecoderEnableMode(&one, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
      ZydisDecoderEnableMode(&one, ZYDIS_DECODER_MODE_TZCNT, ZYAN_FALSE);
      ZydisDecoderEnableMode(&one, ZYDIS_DECODER_MODE_LZCNT, ZYAN_FALSE);
      ZydisDecoderEnableMode(&one, ZYDIS_DECODER_MODE_WBNOINVD, ZYAN_FALSE);
      ZydisDecoderEnableMode(&one, ZYDIS_DECODER_MODE_CLDEMOTE, ZYAN_FALSE);
    }
    return all;
  }();
  return decoders[mode.width()];
}

uint8_t register_or_zero(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return kZero;
  if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return kRip;
  return static_cast<uint8_t>(ZydisRegisterGetId(reg));
}

SegmentName segment_name(ZydisRegister reg) {
  switch (reg) {
    case ZYDIS_REGISTER_ES:
      return kEs;
    case ZYDIS_REGISTER_CS:
      return kCs;
    case ZYDIS_REGISTER_SS:
      return kSs;
    case ZYDIS_REGISTER_FS:
      return kFs;
    case ZYDIS_REGISTER_GS:
      return kGs;
    default:
      return kDs;
  }
}

// In 64-bit code, ES, CS, SS and DS prefixes are ignored. They do not cancel an earlier FS or GS prefix.
SegmentName effective_segment(const Instruction& in, ZydisRegister reg) {
  const SegmentName name = segment_name(reg);
  if (!in.mode.is_long() || name == kFs || name == kGs) return name;
  for (unsigned i = in.info.raw.prefix_count; i-- > 0;) {
    if (in.info.raw.prefixes[i].value == 0x64) return kFs;
    if (in.info.raw.prefixes[i].value == 0x65) return kGs;
  }
  return name;
}

bool is_rsi(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_RSI || reg == ZYDIS_REGISTER_ESI || reg == ZYDIS_REGISTER_SI;
}

// Instructions whose only memory operand is implicit but obeys segment prefixes.
bool is_hidden_operand_of(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_XLAT || mnemonic == ZYDIS_MNEMONIC_MASKMOVQ ||
         mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU;
}

// Returns the operand whose address the op holds: the first one. If there are two (string instructions), the
// one to which a segment prefix applies.
const ZydisDecodedOperand* memory_operand(const Instruction& in) {
  const ZydisDecodedOperand* found = nullptr;
  for (unsigned i = 0; i < in.info.operand_count; ++i) {
    const ZydisDecodedOperand& operand = in.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    const bool visible = i < in.info.operand_count_visible;
    if (found == nullptr && visible) found = &operand;
    if (is_rsi(operand.mem.base) && operand.mem.index == ZYDIS_REGISTER_NONE &&
        operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
      found = &operand;
    if (found == nullptr && is_hidden_operand_of(in.mnemonic())) found = &operand;
  }
  return found;
}

void fill_address(const Instruction& in, Op& op) {
  op.base = op.index = kZero;
  if (in.address_size() == 2) op.bits |= Op::kAddress16;
  if (in.address_size() == 4) op.bits |= Op::kAddress32;
  const bool wraps = in.mode.is_long() && in.address_size() != 8;
  const ZydisDecodedOperand* operand = memory_operand(in);
  if (operand == nullptr) {
    op.segment = in.mode.is_long() ? kFlat : uint8_t{kLegacySegments} + uint8_t{kDs};
    return;
  }
  const auto& memory = operand->mem;
  op.base = register_or_zero(memory.base);
  op.index = register_or_zero(memory.index);
  op.scale = memory.index == ZYDIS_REGISTER_NONE
                 ? 0
                 : static_cast<uint8_t>(std::countr_zero(unsigned{std::max<uint8_t>(memory.scale, 1)}));
  int64_t displacement = memory.disp.has_displacement ? memory.disp.value : 0;
  const auto& raw = in.info.raw;
  if (raw.sib.offset != 0 && raw.modrm.mod == 0 && raw.sib.base == 5) {
    // No base, even if REX.B would make it r13: Zydis misses that for 32-bit addresses.
    op.base = kZero;
    displacement = raw.disp.value;
  }
  if (op.base == kRip) displacement += static_cast<int64_t>(op.end());
  op.displacement = static_cast<int32_t>(displacement);
  const SegmentName segment = effective_segment(in, memory.segment);
  const bool overflowed = op.base == kRip && op.displacement != displacement;
  if (overflowed) op.bits |= Op::kFar;
  if (!in.mode.is_long() || wraps || overflowed) {
    op.segment = static_cast<uint8_t>(uint8_t{kLegacySegments} + uint8_t{segment});
    return;
  }
  op.segment = segment == kFs ? kWithFs : segment == kGs ? kWithGs : segment == kSs ? kFlatStack : kFlat;
}

const Op* too_long(Cpu& cpu, const Op* op) {
  return raise(cpu, op, kProtection, 0);
}

const Op* undefined(Cpu& cpu, const Op* op) {
  return raise(cpu, op, kInvalidOpcode);
}

// For an instruction that CPUID advertises but no family implements.
const Op* unknown(Cpu& cpu, const Op* op) {
  cpu.unknown = "an instruction that is not implemented";
  cpu.leave = Leave::Unknown;
  return stop(cpu, op);
}

const Op* fall_through(Cpu& cpu, const Op* op) {
  return jump_near(cpu, cpu.gpr(kRip) + op->offset, cpu.block->fallthrough);
}
const Op* fall_off_page(Cpu& cpu, const Op* op) {
  return jump_far(cpu, cpu.gpr(kRip) + op->offset);
}

bool promised(const Instruction& in) {
  if (in.mnemonic() == ZYDIS_MNEMONIC_SYSENTER || in.mnemonic() == ZYDIS_MNEMONIC_SYSEXIT) return false;
  switch (in.info.meta.isa_set) {
    case ZYDIS_ISA_SET_I86:
    case ZYDIS_ISA_SET_I186:
    case ZYDIS_ISA_SET_I286PROTECTED:
    case ZYDIS_ISA_SET_I286REAL:
    case ZYDIS_ISA_SET_I386:
    case ZYDIS_ISA_SET_I486:
    case ZYDIS_ISA_SET_I486REAL:
    case ZYDIS_ISA_SET_PENTIUMREAL:
    case ZYDIS_ISA_SET_PENTIUMMMX:
    case ZYDIS_ISA_SET_PPRO:
    case ZYDIS_ISA_SET_CMOV:
    case ZYDIS_ISA_SET_FCMOV:
    case ZYDIS_ISA_SET_X87:
    case ZYDIS_ISA_SET_FXSAVE:
    case ZYDIS_ISA_SET_FXSAVE64:
    case ZYDIS_ISA_SET_SSE:
    case ZYDIS_ISA_SET_SSEMXCSR:
    case ZYDIS_ISA_SET_SSE2:
    case ZYDIS_ISA_SET_SSE2MMX:
    case ZYDIS_ISA_SET_LONGMODE:
    case ZYDIS_ISA_SET_FAT_NOP:
      return true;
    default:
      return false;
  }
}

Modify modify_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
      return Modify::Add;
    case ZYDIS_MNEMONIC_OR:
      return Modify::Or;
    case ZYDIS_MNEMONIC_ADC:
      return Modify::Adc;
    case ZYDIS_MNEMONIC_SBB:
      return Modify::Sbb;
    case ZYDIS_MNEMONIC_AND:
      return Modify::And;
    case ZYDIS_MNEMONIC_SUB:
      return Modify::Sub;
    case ZYDIS_MNEMONIC_XOR:
      return Modify::Xor;
    case ZYDIS_MNEMONIC_INC:
      return Modify::Inc;
    case ZYDIS_MNEMONIC_DEC:
      return Modify::Dec;
    case ZYDIS_MNEMONIC_NOT:
      return Modify::Not;
    case ZYDIS_MNEMONIC_NEG:
      return Modify::Neg;
    case ZYDIS_MNEMONIC_XCHG:
      return Modify::Exchange;
    case ZYDIS_MNEMONIC_XADD:
      return Modify::ExchangeAdd;
    case ZYDIS_MNEMONIC_CMPXCHG:
    case ZYDIS_MNEMONIC_CMPXCHG8B:
    case ZYDIS_MNEMONIC_CMPXCHG16B:
      return Modify::CompareExchange;
    case ZYDIS_MNEMONIC_BTS:
      return Modify::BitSet;
    case ZYDIS_MNEMONIC_BTR:
      return Modify::BitReset;
    case ZYDIS_MNEMONIC_BTC:
      return Modify::BitComplement;
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
      return Modify::Shift;
    default:
      return Modify::Other;
  }
}

bool is_stack_pointer(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_RSP || reg == ZYDIS_REGISTER_ESP || reg == ZYDIS_REGISTER_SP ||
         reg == ZYDIS_REGISTER_SPL;
}

unsigned stack_motion(const Instruction& in) {
  // kMost: the most that an instruction pushes or pops.
  constexpr unsigned kAnywhere = kStackMargin, kMost = 64;
  const ZydisMnemonic mnemonic = in.mnemonic();
  if (mnemonic == ZYDIS_MNEMONIC_LEAVE || mnemonic == ZYDIS_MNEMONIC_ENTER) return kAnywhere;
  if (mnemonic == ZYDIS_MNEMONIC_PUSH) return 8;
  for (unsigned i = 0; i < in.info.operand_count; ++i) {
    if (!in.is_register(i) || !is_stack_pointer(in.reg(i)) ||
        (in.operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
      continue;
    if (i >= in.visible()) return mnemonic == ZYDIS_MNEMONIC_POP ? 8 : kMost;
    const bool adds = mnemonic == ZYDIS_MNEMONIC_ADD || mnemonic == ZYDIS_MNEMONIC_SUB;
    if (!adds || !in.is_immediate(1)) return kAnywhere;
    return static_cast<unsigned>(std::min<int64_t>(std::abs(in.immediate(1)), kAnywhere));
  }
  return 0;
}

// Describes the operand that NextOperations reports (vm/control/next_operation.h).
OperandUse touch_of(const Instruction& in, const Op& operand) {
  for (unsigned i = 0; i < in.info.operand_count; ++i) {
    const ZydisDecodedOperand& one = in.operands[i];
    if (one.type != ZYDIS_OPERAND_TYPE_MEMORY || one.mem.type != ZYDIS_MEMOP_TYPE_MEM) continue;
    const bool is_told =
        &one == memory_operand(in) && (operand.segment < kLegacySegments) == in.mode.is_long();
    if (!is_told || in.address_size() == 2) return OperandUse::Somewhere;
    return (one.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 ? OperandUse::Writes : OperandUse::Reads;
  }
  return OperandUse::Nothing;
}

void fill_hook_facts(const Instruction& in, Decoded& out) {
  out.touch = touch_of(in, out.operand);
  bool modified = false;
  for (unsigned i = 0; i < in.info.operand_count; ++i) {
    const ZydisDecodedOperand& operand = in.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) continue;
    if (!is_stack_pointer(operand.mem.base) && in.mnemonic() != ZYDIS_MNEMONIC_NOP) out.shares_memory = true;
    modified |= (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 &&
                (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  }
  if (modified) {
    out.modifies = static_cast<uint8_t>(modify_of(in.mnemonic()));
    if ((in.info.attributes & ZYDIS_ATTRIB_HAS_LOCK) || in.mnemonic() == ZYDIS_MNEMONIC_XCHG)
      out.modifies |= Block::kLocked;
  }
  if (in.info.meta.category == ZYDIS_CATEGORY_CALL) out.flow = Decoded::Flow::Call;
  if (in.mnemonic() == ZYDIS_MNEMONIC_RET) out.flow = Decoded::Flow::Return;
  out.stack_motion = stack_motion(in);
}

Handler select(Instruction& in, Op& op) {
  // Most frequent first.
  constexpr Handler (*families[])(Instruction&, Op&) = {
      select_move,     select_arithmetic, select_branch, select_stack,  select_shift,
      select_multiply, select_bits,       select_string, select_system, select_ports,
      select_segment,  select_sse,        select_x87,    select_mmx};
  for (const auto family : families) {
    Op attempt = op;
    if (const Handler handler = family(in, attempt); handler != nullptr) {
      op = attempt;
      return handler;
    }
    in.ends_block = in.stands_alone = false;
  }
  in.ends_block = true;
  return promised(in) ? unknown : undefined;
}

}  // namespace

uint8_t Instruction::register_number(unsigned i) const {
  if (i >= info.operand_count || !is_register(i)) return 0;
  const ZydisRegister value = reg(i);
  if (ZydisRegisterGetClass(value) == ZYDIS_REGCLASS_GPR8) {
    const unsigned at = value - ZYDIS_REGISTER_AL;  // al cl dl bl ah ch dh bh spl bpl sil dil r8b ...
    if (at < 4) return static_cast<uint8_t>(at * 8);
    if (at < 8) return static_cast<uint8_t>((at - 4) * 8 + 1);
    return static_cast<uint8_t>((at - 4) * 8);
  }
  return static_cast<uint8_t>(ZydisRegisterGetId(value));
}

Decoded decode_instruction(const uint8_t* bytes, unsigned available, CodeMode mode, unsigned block_in_page,
                           unsigned offset) {
  Instruction in;
  in.mode = mode;
  Decoded out{
      .op = {.handler = undefined, .base = kZero, .index = kZero, .offset = static_cast<uint16_t>(offset)}};
  const unsigned limit = std::min(available, 15u);
  const ZyanStatus status = ZydisDecoderDecodeFull(&decoder(mode), bytes, limit, &in.info, in.operands);
  if (!ZYAN_SUCCESS(status)) {
    if (status == ZYDIS_STATUS_NO_MORE_DATA && available < 15) return out;
    if (status == ZYDIS_STATUS_NO_MORE_DATA || status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG)
      out.op.handler = too_long;
    out.length = 1;
    out.op.length = 1;
    out.ends_block = true;
    return out;
  }
  Op& op = out.op;
  op.length = in.info.length;
  fill_address(in, op);
  out.operand = op;
  if (in.has_rep()) op.bits |= Op::kRep;
  if (in.has_repne()) op.bits |= Op::kRepne;
  if (in.info.attributes & ZYDIS_ATTRIB_HAS_LOCK) op.bits |= Op::kLock;
  // Relative branches need to know whether they stay in the page.
  if (in.info.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && in.is_immediate(0) &&
      in.operands[0].imm.is_relative)
    op.displacement = static_cast<int32_t>(block_in_page);
  op.handler = select(in, op);
  out.length = op.length;
  out.ends_block = in.ends_block;
  out.stands_alone = in.stands_alone;
  if (mode.observed()) fill_hook_facts(in, out);
  return out;
}

Op end_of_block(unsigned offset, unsigned number, bool within_page) {
  return {.handler = within_page ? fall_through : fall_off_page,
          .base = kZero,
          .index = kZero,
          .number = static_cast<uint8_t>(number),
          .offset = static_cast<uint16_t>(offset)};
}

}  // namespace slalom::vm
