// What is undefined or vendor-specific after an instruction.
#pragma once

#include "forms.h"

namespace slalom::vm::diff {

struct Undefined {
  uint64_t flags = 0;
  uint16_t x87_status = 0;  // condition codes
  int reg = -1;             // a general register; -1: none
  bool no_stack = false;    // a faulting MMX store may already have switched the x87 registers to MMX
  bool approximate_vectors = false;  // RCPPS and similar
  bool approximate_x87 = false;      // FSIN and similar
};

Undefined undefined_after(const Case& one, const Decoded& in);
// Bytes of a stored operand that contain the address of the last x87 instruction, which differs between CPUs.
// [first, last), relative to the operand; for FXSAVE, FSAVE and FSTENV.
std::vector<std::pair<unsigned, unsigned>> undefined_bytes(const Decoded& in);

}  // namespace slalom::vm::diff
