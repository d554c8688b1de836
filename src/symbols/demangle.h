// Names of C and C++ functions, as people write them.
#pragma once

#include <string>

namespace slalom {

// Of a symbol; what is no C++ symbol stays as it is.
std::string demangle(const std::string& symbol);
// Without its arguments and result: "Queue::push", "main::{lambda()#1}".
std::string short_name(const std::string& symbol);

}  // namespace slalom
