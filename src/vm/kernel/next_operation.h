// What a CPU is about to do to memory, as far as its next instruction says: for strategies and reports.
#pragma once

#include "trace/choice.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm {

// The first operand in memory; OpKind::None where there is none, or the instruction cannot be read.
PendingOp next_operation(const Cpu& cpu);

}  // namespace slalom::vm
