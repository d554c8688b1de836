// Where a debugger has to stand for its user to see a finding: before the instruction that the finding is
// about, on its CPU; or at the end, where nothing goes on.
//
// For people: a finding that names no instruction, or one that is not met again, leads to the nearest place
// that is known. Nothing is concluded from it.
#pragma once

#include <string>

#include "symbols/symbol_table.h"
#include "trace/verdict.h"
#include "vm/control/course.h"
#include "vm/gdb/debugger.h"

namespace slalom::vm {

struct FailurePlace {
  DebugStop stop;
  std::string text;  // "before the second access of the race"
};

// `debugger` may stand anywhere, and has no breakpoints; it has none afterwards.
FailurePlace go_to_failure(Debugger& debugger, const Course& course, const Verdict& verdict,
                           const SymbolTable& symbols);

}  // namespace slalom::vm
