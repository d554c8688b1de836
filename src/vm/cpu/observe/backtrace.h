// Where a CPU is, for people: the bytes at rip, the mode, the registers, and who called.
#pragma once

#include <string>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

std::string describe_place(const Cpu& cpu);
// After a triple fault: Cpu::last_faults, a line each.
std::string describe_shutdown(const Cpu& cpu);
std::string exception_name(uint8_t vector);  // "#PF"

}  // namespace slalom::vm
