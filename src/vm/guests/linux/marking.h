// Finds accesses that a kernel's source marks as ones that may race: READ_ONCE, atomics, RCU and so on.
//
// Uses the names of inlined functions and the text of source lines. Both may mislead: a line may contain two
// accesses, only one of which is marked. For reports only.
#pragma once

#include <string_view>

namespace slalom::vm {

enum class Mark : uint8_t { None = 0, Load = 1, Store = 2, Both = 3 };
constexpr Mark operator|(Mark a, Mark b) {
  return static_cast<Mark>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool covers(Mark mark, bool writes) {
  return (static_cast<uint8_t>(mark) & static_cast<uint8_t>(writes ? Mark::Store : Mark::Load)) != 0;
}

Mark mark_of_function(std::string_view name);  // "arch_atomic_read"
Mark mark_of_line(std::string_view source);    // "if (READ_ONCE(box->ready))"

}  // namespace slalom::vm
