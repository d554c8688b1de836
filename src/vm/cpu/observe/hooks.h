// Hooks: ops of observed blocks that are no instructions (see cpu/observe/tap.h). A hook comes before the
// instruction with the same number.
#pragma once

#include "vm/cpu/blocks.h"
#include "vm/cpu/op.h"

namespace slalom::vm {

enum class Hook : uint8_t {
  Block,   // at the start of every block, if edges, calls or stacks matter
  Call,    // before a call
  Return,  // before a return
  Place,   // where the CPU may stop
};

// Whether the block stops at this instruction's place.
bool is_place(const Block& block, const Op* op);

Op make_hook(Hook hook, unsigned offset, unsigned number);
// For an instruction whose operand matters (Cpu::pending).
Op make_place_hook(const Decoded& one, unsigned offset, unsigned number);

}  // namespace slalom::vm
