// Can a piece of code execute one of its instructions twice, without being left in between?
//
// Only by a jump back into itself, or by one whose target is not in the instruction. Says yes where it cannot
// tell.
#pragma once

#include <cstdint>
#include <span>

namespace slalom {

bool may_loop(std::span<const uint8_t> code);

}  // namespace slalom
