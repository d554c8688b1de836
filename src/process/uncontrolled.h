// Describes for the user what a target did that slalom does not control.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/sight.h"

namespace slalom {

// `bits` are of preload::Uncontrolled (preload/protocol.h).
std::vector<UncontrolledAct> uncontrolled_in_words(uint32_t bits);

}  // namespace slalom
