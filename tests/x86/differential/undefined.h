// What the architecture leaves undefined, or to the vendor, after an instruction.
#pragma once

#include "forms.h"

namespace slalom::vm::diff {

struct Undefined {
  uint64_t flags = 0;
  uint16_t x87_status = 0;  // condition codes
  int reg = -1;             // a general register
  bool no_stack = false;    // a store of MMX that faults may have turned the x87 registers into MMX's already
  bool approximate_vectors = false;  // RCPPS and its like
  bool approximate_x87 = false;      // FSIN and its like
};

Undefined undefined_after(const Case& one, const Decoded& in);
// Bytes that an instruction stores and that say where the last x87 instruction was: not the same on all CPUs.
// [first, last) from the start of its operand, for FXSAVE, FSAVE and FSTENV.
std::vector<std::pair<unsigned, unsigned>> undefined_bytes(const Decoded& in);

}  // namespace slalom::vm::diff
