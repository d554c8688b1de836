// Instruction: one decoded instruction before it becomes an op, and the families of handlers.
//
// A family checks the mnemonic and the operands, selects a handler, and sets the op's fields that the handler
// reads. decode.cc has already set the position, the prefixes and the memory operand.
#pragma once

#include <Zydis/Zydis.h>

#include "vm/cpu/op.h"
#include "vm/cpu/registers.h"

namespace slalom::vm {

struct Instruction {
  ZydisDecodedInstruction info;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  CodeMode mode;
  bool ends_block = false;    // set by a family whose handler does not use NEXT
  bool stands_alone = false;  // it must be the only instruction of its block

  ZydisMnemonic mnemonic() const { return info.mnemonic; }
  const ZydisDecodedOperand& operand(unsigned i) const { return operands[i]; }
  unsigned visible() const { return info.operand_count_visible; }
  bool is_register(unsigned i) const { return operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER; }
  bool is_memory(unsigned i) const { return operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY; }
  bool is_immediate(unsigned i) const { return operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE; }
  unsigned size(unsigned i) const { return operands[i].size / 8; }  // in bytes
  ZydisRegister reg(unsigned i) const { return operands[i].reg.value; }
  // The number of a general, XMM, MMX or x87 register. For an 8-bit register, its byte offset in the register
  // file.
  uint8_t register_number(unsigned i) const;
  int64_t immediate(unsigned i) const {
    return operands[i].imm.is_signed ? operands[i].imm.value.s
                                     : static_cast<int64_t>(operands[i].imm.value.u);
  }
  bool has_rep() const {
    return (info.attributes & ZYDIS_ATTRIB_HAS_REP) || (info.attributes & ZYDIS_ATTRIB_HAS_REPE);
  }
  bool has_repne() const { return (info.attributes & ZYDIS_ATTRIB_HAS_REPNE) != 0; }
  unsigned operand_size() const { return info.operand_width / 8u; }
  unsigned address_size() const { return info.address_width / 8u; }
};

// Each returns nullptr for instructions of other families. select_move: mov, movzx, xchg, lea, cmov, set,
// bswap, and other data movement without strings.
Handler select_move(Instruction& in, Op& op);
Handler select_arithmetic(Instruction& in, Op& op);  // add ... cmp, inc, dec, neg, not, test, xadd, cmpxchg
Handler select_shift(Instruction& in, Op& op);       // shl ... rcr, shld, shrd
Handler select_multiply(Instruction& in, Op& op);    // mul, imul, div, idiv, cwd ..., decimal adjust
Handler select_bits(Instruction& in, Op& op);        // bt, bts, bsf, bsr
Handler select_stack(Instruction& in, Op& op);       // push, pop, pusha, enter, leave, pushf, popf
Handler select_branch(Instruction& in, Op& op);      // jcc, jmp, call, ret, loop, int, iret
Handler select_string(Instruction& in, Op& op);      // movs, stos, lods, cmps, scas, ins, outs
Handler select_ports(Instruction& in, Op& op);       // in, out, ins, outs
Handler select_system(Instruction& in, Op& op);      // control registers, descriptor tables, msr, hlt
Handler select_segment(Instruction& in, Op& op);     // segment loads, far transfers, verr, lar
Handler select_sse(Instruction& in, Op& op);         // SSE, SSE2 (cpu/handlers/vector/sse_*.cc)
Handler select_x87(Instruction& in, Op& op);         // x87 (cpu/handlers/x87/x87_*.cc)
Handler select_mmx(Instruction& in, Op& op);

}  // namespace slalom::vm
