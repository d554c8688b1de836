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

// Empty: they agree. What the architecture leaves undefined, and what vendors do differently (docs/x86.md),
// is no difference.
std::vector<Difference> compare(const Case& one, const Outcome& guest, const Outcome& host);

}  // namespace slalom::vm::diff
