// Targets that are toy programs: from a TOML file, or from such a file's text in a capsule.
#pragma once

#include <string>
#include <vector>

#include "campaign/target.h"

namespace slalom {

// `settings`: parameters of the program, as NAME=NUMBER.
Result<Target> open_toy(const std::string& path, const std::vector<std::string>& settings);
Result<Target> open_toy(const TargetId& id);

}  // namespace slalom
