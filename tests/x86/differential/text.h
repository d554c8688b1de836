// Cases as text: what a mismatch looks like to a reader, and what a regression file holds.
//
// A file has one "name value" per line; what it does not name is zero or as after FNINIT. Lines that start
// with # say why the case is kept:
//
//   # imul r16, imm8 kept the upper half of the register
//   mode 64
//   bytes 66 6b c3 ff
//   rip 10000100
//   rbx 8000
//   data 20000010 00 01 02
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "compare.h"

namespace slalom::vm::diff {

// The case must have its data in patches (background kZeros).
std::string to_text(const Case& one);
Result<Case> parse_case(std::string_view text);

std::string describe(const Case& one, const std::vector<Difference>& differences);

}  // namespace slalom::vm::diff
