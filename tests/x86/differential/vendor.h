// Differences between CPU vendors. The guest is an Intel CPU. A host of another vendor differs from it in
// some corners; each is described as narrowly as it can be, and everything else must be equal there, too.
#pragma once

#include "compare.h"

namespace slalom::vm::diff {

bool host_is_intel();

// Is all that was found what a host of another vendor does differently? `in` is null for what is no
// instruction.
bool vendors_differ(const Case& one, const Decoded* in, const Outcome& guest, const Outcome& host,
                    const std::vector<Difference>& found);

}  // namespace slalom::vm::diff
