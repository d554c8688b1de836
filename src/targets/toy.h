// Targets that are toy programs: a TOML file, or the text of one inside a capsule.
#pragma once

#include <string>
#include <vector>

#include "campaign/target.h"

namespace slalom {

// `settings`: parameters of the program, as NAME=NUMBER.
Result<Target> open_toy(const std::string& path, const std::vector<std::string>& settings);
Result<Target> open_toy(const TargetId& id);

}  // namespace slalom
