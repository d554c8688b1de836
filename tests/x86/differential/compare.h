// Compares the outcomes of a case in the interpreter and on the host.
#pragma once

#include <string>
#include <vector>

#include "forms.h"

namespace slalom::vm::diff {

struct Difference {
  std::string what;  // "rax", "flags", "memory" ...
  std::string guest;
  std::string host;
};

struct Verdict {
  std::vector<Difference> differences;  // empty if both agree
  bool vendors = false;                 // both differ, but only as CPUs of two vendors may (vendor.h)
};

// Ignores what the architecture leaves undefined and what vendors do differently (docs/x86.md).
Verdict compare(const Case& one, const Outcome& guest, const Outcome& host);

}  // namespace slalom::vm::diff
