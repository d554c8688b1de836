// A capsule: a Finding in one file, which replays on any host.
#pragma once

#include <filesystem>
#include <span>

#include "base/result.h"
#include "finding/finding.h"

namespace slalom {

inline constexpr const char* kCapsuleName = "capsule.slalom";  // in the folder of a finding

Result<void> save_capsule(const std::filesystem::path& path, const Finding& finding);
Result<Finding> load_capsule(const std::filesystem::path& path);  // or the folder that a store keeps it in
Result<Finding> parse_capsule(std::span<const uint8_t> file);

}  // namespace slalom
