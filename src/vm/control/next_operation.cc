#include "vm/control/next_operation.h"

#include <Zydis/Zydis.h>

#include <cstring>

#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

bool is_next(ZydisRegister reg) {
  return reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP;
}

uint8_t number_of(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE || is_next(reg)) return kZero;
  return static_cast<uint8_t>(ZydisRegisterGetId(reg) & 15);
}

bool is_narrow(ZydisRegister reg) {
  return reg != ZYDIS_REGISTER_NONE && !is_next(reg) &&
         ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) == 32;
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

NextOperations::Known NextOperations::decode(const std::array<uint8_t, 16>& bytes, size_t size,
                                             bool is_long) {
  Known known{.bytes = bytes, .size = static_cast<uint8_t>(size), .is_long = is_long};
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, is_long ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                   is_long ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
  ZydisDecodedInstruction in;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes.data(), size, &in, operands))) return known;
  for (unsigned i = 0; i < in.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) continue;
    known.kind = kind_of(in, operand);
    known.base = number_of(operand.mem.base);
    known.index = number_of(operand.mem.index);
    known.scale = operand.mem.scale;
    known.narrow = is_narrow(operand.mem.base) || is_narrow(operand.mem.index);
    known.from_next = is_next(operand.mem.base);
    known.length = in.length;
    if (operand.mem.disp.has_displacement) known.displacement = static_cast<uint64_t>(operand.mem.disp.value);
    if (operand.mem.segment == ZYDIS_REGISTER_GS) known.segment = kGs;
    if (operand.mem.segment == ZYDIS_REGISTER_FS) known.segment = kFs;
    break;
  }
  return known;
}

PendingOp NextOperations::of(const Cpu& cpu) {
  const uint64_t rip = cpu.regs.gpr[kRip];
  PendingOp op{OpKind::None, {}, Place{rip}};
  const bool is_long = cpu.mode.is_long();
  std::array<uint8_t, 16> bytes;
  size_t size = kMostBytes;
  const uint64_t address_of_code = is_long ? rip : static_cast<uint32_t>(cpu.code_base + rip);
  const TlbEntry& entry = cpu.tlbs[rip >> 63 != 0 ? 0 : 1].entries[Tlb::index(rip)];
  // As read_memory() does it, if the size is known.
  if (is_long && entry.read == (rip & kPageMask) && rip % kPageSize <= kPageSize - bytes.size()) {
    std::memcpy(bytes.data(), reinterpret_cast<const void*>(rip + entry.addend), bytes.size());
  } else {
    bytes = {};
    size = read_memory(cpu, address_of_code, std::span(bytes).first(kMostBytes));
    if (size == 0) return op;
  }
  bytes[kMostBytes] = 0;
  Known& known = known_[slot_of(rip)];
  const auto differ = [](const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b) {
    return std::memcmp(a.data(), b.data(), a.size()) != 0;
  };
  if (known.rip != rip || known.size != size || known.is_long != is_long || differ(known.bytes, bytes)) {
    known = decode(bytes, size, is_long);
    known.rip = rip;
  }
  if (known.kind == OpKind::None) return op;
  const auto value = [&](uint8_t number) {
    return known.narrow ? static_cast<uint32_t>(cpu.regs.gpr[number]) : cpu.regs.gpr[number];
  };
  uint64_t address = known.displacement + value(known.base) + value(known.index) * known.scale;
  if (known.from_next) address += rip + known.length;
  if (known.segment != 0) address += cpu.regs.segments[known.segment].base;
  op.kind = known.kind;
  op.object = ObjectId{is_long ? address : static_cast<uint32_t>(address)};
  return op;
}

}  // namespace slalom::vm
