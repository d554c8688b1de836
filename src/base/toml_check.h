// A check before a TOML file is parsed, for what toml++ does not survive:
// - It nests one table in another for each dot of a key, without a limit, and overflows the stack when it
// lets
//   go of them. (For values it has a limit of its own.)
// - Where white space may be, its tables of Unicode have undefined behaviour for most letters that are not
//   ASCII.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slalom {

inline constexpr int kMostTomlDots = 50;  // of one key

// `origin`: the file's name, for the message.
Result<void> check_toml(std::string_view text, std::string_view origin);

}  // namespace slalom
