// What people call the interrupts and exceptions of a Linux kernel.
#pragma once

#include <string>

namespace slalom::vm {

// x86's exceptions and Linux's own vectors; others are devices'.
std::string vector_name(unsigned vector);

}  // namespace slalom::vm
