// System calls in words: "openat(-100, "/etc/passwd", 0x80000, 0)". For people only: texts are read from
// guest memory, if it is mapped at that moment.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

std::string system_call_title(uint64_t number);  // "openat", "system call 999"
// For a call that the CPU has just made. If the arguments' types are unknown, it shows all six.
std::string system_call_text(const Cpu& cpu, uint64_t number, std::span<const uint64_t, 6> arguments);

}  // namespace slalom::vm
