// Rejects TOML files that toml++ cannot parse safely, before it parses them:
// - For each dot of a key, toml++ nests one table in another without a limit. It overflows the stack when it
//   frees them. (For values it has a limit of its own.)
// - In places of white space, its Unicode tables have undefined behaviour for most letters that are not
//   ASCII.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slalom {

inline constexpr int kMostTomlDots = 50;  // of one key

// `origin`: the file's name, for messages.
Result<void> check_toml(std::string_view text, std::string_view origin);

}  // namespace slalom
