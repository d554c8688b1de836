// Splits lists such as "race,heap".
#pragma once

#include <string_view>
#include <vector>

namespace slalom {

// Returns the parts between the separators, one more than there are separators. The parts point into `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace slalom
