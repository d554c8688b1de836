// Where a CPU is, for people: the bytes at rip, the mode, the registers, and who called.
#pragma once

#include <string>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

std::string describe_place(const Cpu& cpu);

}  // namespace slalom::vm
