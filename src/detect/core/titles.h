// Functions for titles. A title is the key by which findings are merged, so it must not contain the parts of
// names that distinguish copies of the same thing.
#pragma once

#include <string>
#include <string_view>

namespace slalom {

// "a[3]" -> "a[]", "heap(worker#0,1)[2]" -> "heap[]", "worker#2" -> "worker", "child@1.2" -> "child"
std::string generic_name(std::string_view name);

// As generic_name, for a message. Numbers that stand alone, decimal or hexadecimal, become "N". Digits within
// identifiers stay.
std::string generic_text(std::string_view text);

}  // namespace slalom
