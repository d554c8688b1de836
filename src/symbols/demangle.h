// Names of C and C++ functions as people write them.
#pragma once

#include <string>

namespace slalom {

// Returns the readable form of a symbol. A symbol that is not C++ stays as it is.
std::string demangle(const std::string& symbol);
// Returns the name without arguments and result: "Queue::push", "main::{lambda()#1}".
std::string short_name(const std::string& symbol);

}  // namespace slalom
