// What single instructions need so that they do something interesting more often than chance would let them,
// and what must never reach the host.
#pragma once

#include "forms.h"
#include "values.h"

namespace slalom::vm::diff {

uint64_t segment_base(const Case& one, ZydisRegister segment);
// The linear address of a memory operand.
uint64_t effective_address(const Case& one, const Decoded& in, const ZydisDecodedOperand& operand);

// Before the registers that make addresses are set, and after.
void favour_registers(Case& one, const Decoded& in, Values& values);
void favour_memory(Case& one, const Decoded& in, Values& values);

// False for what would stop the host, change how the child runs, or take it half a millisecond (an atomic
// access across cache lines).
bool harmless(const Case& one, const Decoded& in);
// May bytes that Zydis does not know run on the host? Not those that a newer CPU may know.
bool surely_invalid(Mode mode, std::span<const uint8_t> bytes);

}  // namespace slalom::vm::diff
