// Names of the interrupts and exceptions of a Linux kernel, for people.
#pragma once

#include <string>

namespace slalom::vm {

// Names x86's exceptions and Linux's own vectors. Other vectors belong to devices.
std::string vector_name(unsigned vector);

}  // namespace slalom::vm
