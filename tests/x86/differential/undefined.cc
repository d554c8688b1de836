#include "undefined.h"

#include "favour.h"
#include "vm/cpu/registers.h"

namespace slalom::vm::diff {
namespace {

uint64_t operand_value(const Case& one, const Decoded& in, const ZydisDecodedOperand& operand) {
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return operand.imm.value.u;
  uint64_t value = 0;
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    value = one.state.gpr[static_cast<size_t>(ZydisRegisterGetId(operand.reg.value)) & 15];
  } else {
    const uint64_t address = effective_address(one, in, operand);
    for (unsigned i = 0; i < operand.size / 8; ++i) {
      if (address + i < kData || address + i >= kData + kWritable) return 1;
      // The last patch wins.
      uint8_t byte = 0;
      for (unsigned p = 0; p < one.patches; ++p) {
        const Patch& patch = one.patch[p];
        const uint64_t offset = address + i - kData;
        if (offset >= patch.offset && offset < uint64_t{patch.offset} + patch.size)
          byte = patch.bytes[offset - patch.offset];
      }
      value |= uint64_t{byte} << (8 * i);
    }
  }
  if (operand.size < 64) value &= (uint64_t{1} << operand.size) - 1;
  return value;
}

unsigned shift_count(const Case& one, const Decoded& in, unsigned index) {
  if (in.info.operand_count_visible <= index) return 1;
  const ZydisDecodedOperand& operand = in.operands[index];
  const uint64_t count =
      operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? operand.imm.value.u : one.state.gpr[kRcx];
  return static_cast<unsigned>(count & (in.operands[0].size == 64 ? 63 : 31));
}

// Shifts: a count of zero changes nothing. A count above one leaves OF undefined; the width or more leaves CF
// undefined.
void shifts(const Case& one, const Decoded& in, Undefined& out) {
  const unsigned width = in.operands[0].size;
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR: {
      const unsigned count = shift_count(one, in, 1);
      out.flags = count == 0 ? 0 : flag::kAdjust;
      if (count > 1) out.flags |= flag::kOverflow;
      if (count >= width && in.info.mnemonic != ZYDIS_MNEMONIC_SAR) out.flags |= flag::kCarry;
      return;
    }
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD: {
      const unsigned count = shift_count(one, in, 2);
      out.flags = count == 0 ? 0 : flag::kAdjust;
      if (count > 1) out.flags |= flag::kOverflow;
      if (count <= width) return;
      out.flags |= flag::kArithmetic;
      if (in.operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
        out.reg = ZydisRegisterGetId(in.operands[0].reg.value);
      return;
    }
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_RCL:
    case ZYDIS_MNEMONIC_RCR: {
      const unsigned count = shift_count(one, in, 1);
      out.flags = count > 1 ? flag::kOverflow : 0;
      return;
    }
    default:
      return;
  }
}

}  // namespace

Undefined undefined_after(const Case& one, const Decoded& in) {
  Undefined out;
  if (in.info.cpu_flags != nullptr) out.flags = in.info.cpu_flags->undefined & flag::kArithmetic;
  if (in.info.fpu_flags != nullptr) {
    const uint32_t codes = in.info.fpu_flags->undefined;
    out.x87_status = static_cast<uint16_t>((codes & 7) << 8 | (codes & 8) << 11);
  }
  shifts(one, in, out);
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR: {
      // For a zero source, every CPU keeps the register, but perhaps not its upper half.
      if (operand_value(one, in, in.operands[1]) == 0 && in.operands[0].size == 32)
        out.reg = ZydisRegisterGetId(in.operands[0].reg.value);
      break;
    }
    case ZYDIS_MNEMONIC_BSWAP:
      if (in.operands[0].size == 16) out.reg = ZydisRegisterGetId(in.operands[0].reg.value);
      break;
    case ZYDIS_MNEMONIC_RCPPS:
    case ZYDIS_MNEMONIC_RCPSS:
    case ZYDIS_MNEMONIC_RSQRTPS:
    case ZYDIS_MNEMONIC_RSQRTSS:
      out.approximate_vectors = true;
      break;
    case ZYDIS_MNEMONIC_F2XM1:
    case ZYDIS_MNEMONIC_FCOS:
    case ZYDIS_MNEMONIC_FPATAN:
    case ZYDIS_MNEMONIC_FPTAN:
    case ZYDIS_MNEMONIC_FSIN:
    case ZYDIS_MNEMONIC_FSINCOS:
    case ZYDIS_MNEMONIC_FYL2X:
    case ZYDIS_MNEMONIC_FYL2XP1:
      out.approximate_x87 = true;
      break;
    default:
      break;
  }
  return out;
}

std::vector<std::pair<unsigned, unsigned>> undefined_bytes(const Decoded& in) {
  const unsigned width = in.info.operand_width == 16 ? 2 : 4;
  switch (in.info.mnemonic) {
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
      return {{6, 24}, {28, 32}, {416, 512}};
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FNSTENV:
      return {{3 * width, 7 * width}};
    default:
      return {};
  }
}

}  // namespace slalom::vm::diff
