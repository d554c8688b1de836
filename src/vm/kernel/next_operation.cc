#include "vm/kernel/next_operation.h"

#include <Zydis/Zydis.h>

#include <array>

#include "vm/memory/guest_memory.h"

namespace slalom::vm {
namespace {

uint64_t value_of(const Cpu& cpu, ZydisRegister reg, uint64_t next) {
  if (reg == ZYDIS_REGISTER_NONE) return 0;
  if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return next;
  const uint64_t value = cpu.regs.gpr[static_cast<size_t>(ZydisRegisterGetId(reg)) & 15];
  return ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32 ? static_cast<uint32_t>(value) : value;
}

OpKind kind_of(const ZydisDecodedInstruction& in, const ZydisDecodedOperand& operand) {
  const bool reads = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  const bool writes = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  const bool locked = (in.attributes & ZYDIS_ATTRIB_HAS_LOCK) || in.mnemonic == ZYDIS_MNEMONIC_XCHG;
  if (reads && writes && locked)
    return in.mnemonic == ZYDIS_MNEMONIC_CMPXCHG ? OpKind::CompareExchange : OpKind::ReadModifyWrite;
  return writes ? OpKind::Store : OpKind::Load;
}

}  // namespace

PendingOp next_operation(const Cpu& cpu) {
  const uint64_t rip = cpu.regs.gpr[kRip];
  PendingOp op{OpKind::None, {}, Place{rip}};
  const bool is_long = cpu.mode.is_long();
  std::array<uint8_t, 15> bytes;
  const size_t size = read_memory(cpu, is_long ? rip : static_cast<uint32_t>(cpu.code_base + rip), bytes);
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, is_long ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                   is_long ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), size, &in, operands))) return op;
  for (unsigned i = 0; i < in.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) continue;
    uint64_t address = value_of(cpu, operand.mem.base, rip + in.length) +
                       value_of(cpu, operand.mem.index, 0) * operand.mem.scale;
    if (operand.mem.disp.has_displacement) address += static_cast<uint64_t>(operand.mem.disp.value);
    if (operand.mem.segment == ZYDIS_REGISTER_GS) address += cpu.regs.segments[kGs].base;
    if (operand.mem.segment == ZYDIS_REGISTER_FS) address += cpu.regs.segments[kFs].base;
    if (!is_long) address = static_cast<uint32_t>(address);
    op.kind = kind_of(in, operand);
    op.object = ObjectId{address};
    return op;
  }
  return op;
}

}  // namespace slalom::vm
