// Forms: every instruction that user mode can run and CPUID promises, one for each way of encoding it.
//
// Found by asking Zydis about the whole opcode space. A form's name has the notation of the opcode tables
// (forms.txt): mode, prefixes and opcode with the digit of its ModRM byte, kinds of operands, mnemonic:
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

// As the interpreter's decoder is set up. Null: no instruction.
std::optional<Decoded> decode(Mode mode, std::span<const uint8_t> bytes);
std::string disassemble(Mode mode, std::span<const uint8_t> bytes, uint64_t address);

struct Form {
  std::string name;
  std::string code;       // opcode and digit, as in the name
  std::string signature;  // what distinguishes its instructions from others of the same mode
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
  int digit = -1;        // the ModRM byte's reg, when it is part of the opcode
  int rm = -1;           // its rm, likewise
  std::string excluded;  // why none of its instructions is compared; empty for nearly all
  ZydisMnemonic mnemonic = ZYDIS_MNEMONIC_INVALID;
};

// What comparing an instruction with the host is worth.
enum class Comparable : uint8_t {
  Yes,
  No,           // what it does depends on the host: it runs on neither side
  NotPromised,  // must be an invalid opcode in the interpreter; the host is not asked
};
Comparable comparable(const Decoded& in);
// Why not, for those that are never compared; empty otherwise.
std::string why_not(const Decoded& in);

// Opcode, operands and mnemonic, without the prefixes that may change nothing.
std::string signature(const Decoded& in);
// All of them, in the order of their encoding.
std::vector<Form> all_forms();

}  // namespace slalom::vm::diff
