// Cases as text, for readers of mismatches and for regression files.
//
// A file has one "name value" per line. Everything else is zero or as after FNINIT. Lines that start with #
// explain why the case is kept:
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

// The case must have all of its data in patches (background kZeros).
std::string to_text(const Case& one);
Result<Case> parse_case(std::string_view text);

std::string describe(const Case& one, const std::vector<Difference>& differences);

}  // namespace slalom::vm::diff
