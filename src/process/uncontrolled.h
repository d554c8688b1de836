// What a target did that slalom does not control, for its user: named, never ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slalom {

// `bits` as in preload/protocol.h.
std::vector<std::string> uncontrolled_in_words(uint32_t bits);

}  // namespace slalom
