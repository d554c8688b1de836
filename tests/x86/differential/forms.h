// Forms: all instructions that user mode can run and CPUID advertises, one form for each encoding.
//
// They are found by decoding the whole opcode space with Zydis. The name of a form uses the notation of
// opcode tables (forms.txt): mode, prefixes, opcode with the digit of its ModRM byte, kinds of operands,
// mnemonic:
//
//   64 lock W 0fb1 m64,r64 cmpxchg
//   32 66 83/5 r16,imm sub
#pragma once

#include <Zydis/Zydis.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "case.h"

namespace slalom::vm::diff {

struct Decoded {
  ZydisDecodedInstruction info;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

  bool has_memory() const;  // as a visible operand
  bool locks() const;       // LOCK, or XCHG with memory
};

// Configured like the interpreter's decoder. Empty if the bytes are no instruction.
std::optional<Decoded> decode(Mode mode, std::span<const uint8_t> bytes);
std::string disassemble(Mode mode, std::span<const uint8_t> bytes, uint64_t address);

struct Form {
  std::string name;
  std::string code;       // opcode and digit, as in the name
  std::string signature;  // differs from that of other instructions of the same mode
  Mode mode = Mode::k64;
  uint8_t segment = 0;        // prefix byte, or 0
  bool address_size = false;  // 67
  bool lock = false;
  bool operand_size = false;  // 66
  uint8_t repeat = 0;         // f2, f3, or 0
  bool wide = false;          // REX.W
  bool two_byte = false;      // 0f
  uint8_t opcode = 0;
  bool has_modrm = false;
  bool memory = false;
  int digit = -1;        // the reg field of ModRM, if it is part of the opcode; otherwise -1
  int rm = -1;           // the rm field, likewise
  std::string excluded;  // why its instructions are never compared; usually empty
  ZydisMnemonic mnemonic = ZYDIS_MNEMONIC_INVALID;
};

// Whether comparing an instruction with the host is meaningful.
enum class Comparable : uint8_t {
  Yes,
  No,           // its effect depends on the host: neither side runs it
  NotPromised,  // must be an invalid opcode in the interpreter; not run on the host
};
Comparable comparable(const Decoded& in);
// The reason why an instruction is never compared; empty if it is compared.
std::string why_not(const Decoded& in);

// Opcode, operands and mnemonic, without prefixes that may have no effect.
std::string signature(const Decoded& in);
// All forms, in the order of their encoding.
std::vector<Form> all_forms();

}  // namespace slalom::vm::diff
