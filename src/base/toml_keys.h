// A check before a TOML file is parsed: toml++ nests one table in another for each dot of a key, without a
// limit, and overflows the stack when it lets go of them. (For values it has a limit of its own.)
#pragma once

#include <string_view>

namespace slalom {

inline constexpr int kMostTomlDots = 50;  // of one key

// The line of the first key with more dots than that, counted from 1; 0: there is none.
int line_of_overlong_toml_key(std::string_view text);

}  // namespace slalom
