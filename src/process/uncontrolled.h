// What a target did that slalom does not control, for its user: named, never ignored.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/sight.h"

namespace slalom {

// `bits` as in preload/protocol.h.
std::vector<UncontrolledAct> uncontrolled_in_words(uint32_t bits);

}  // namespace slalom
