// Describes where a CPU is, for people: the bytes at rip, the mode, the registers, and a backtrace.
#pragma once

#include <string>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

std::string describe_place(const Cpu& cpu);
// After a triple fault: one line for each of Cpu::last_faults.
std::string describe_shutdown(const Cpu& cpu);
std::string exception_name(uint8_t vector);  // "#PF"

}  // namespace slalom::vm
