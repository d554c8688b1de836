// Finds the position at which a debugger shows a finding: before the instruction that the finding is about,
// on its CPU, or at the end if nothing can go on.
//
// For people only: no result depends on it. If the finding names no instruction, or the instruction is not
// found again, it uses the nearest known place.
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

// `debugger` may stand anywhere, and must have no breakpoints. It has none afterwards.
FailurePlace go_to_failure(Debugger& debugger, const Course& course, const Verdict& verdict,
                           const SymbolTable& symbols);

}  // namespace slalom::vm
