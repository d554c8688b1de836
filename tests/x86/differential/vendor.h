// Differences between CPU vendors. The guest is an Intel CPU. A host of another vendor differs in some
// details. Each is described as narrowly as possible; everything else must be equal there, too.
#pragma once

#include "compare.h"

namespace slalom::vm::diff {

bool host_is_intel();

// Returns true if a host of another vendor explains all differences. `in` is nullptr if the bytes are no
// instruction.
bool vendors_differ(const Case& one, const Decoded* in, const Outcome& guest, const Outcome& host,
                    const std::vector<Difference>& found);

}  // namespace slalom::vm::diff
