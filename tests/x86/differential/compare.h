// Compares what the interpreter and the host made of a case, where both must agree.
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
  std::vector<Difference> differences;  // empty: they agree
  bool vendors = false;                 // they do not, but only as CPUs of two vendors may (vendor.h)
};

// What the architecture leaves undefined, and what vendors do differently (docs/x86.md), is no difference.
Verdict compare(const Case& one, const Outcome& guest, const Outcome& host);

}  // namespace slalom::vm::diff
