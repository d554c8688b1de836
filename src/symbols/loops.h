// Determines whether a piece of code can execute one of its instructions twice without leaving the piece in
// between.
//
// Only a jump back into the piece can do so, or a jump whose target is not in the instruction. may_loop()
// returns true if it cannot tell.
#pragma once

#include <cstdint>
#include <span>

namespace slalom {

bool may_loop(std::span<const uint8_t> code);

}  // namespace slalom
