// Prepares registers and memory so that certain instructions do something interesting more often than by
// chance, and rejects instructions that the host must not run.
#pragma once

#include "forms.h"
#include "values.h"

namespace slalom::vm::diff {

uint64_t segment_base(const Case& one, ZydisRegister segment);
// The linear address of a memory operand.
uint64_t effective_address(const Case& one, const Decoded& in, const ZydisDecodedOperand& operand);

// Called before the registers for addresses are set, and after.
void favour_registers(Case& one, const Decoded& in, Values& values);
void favour_memory(Case& one, const Decoded& in, Values& values);

// Returns false if the case would stop the host, change how the child runs, or take half a millisecond (an
// atomic access across cache lines).
bool harmless(const Case& one, const Decoded& in);
// Returns true if the host may run bytes that Zydis does not know. False if a newer CPU may know them.
bool surely_invalid(Mode mode, std::span<const uint8_t> bytes);

}  // namespace slalom::vm::diff
