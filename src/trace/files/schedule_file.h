// A schedule in a file of its own. It replays against a target that the user names. A capsule
// (finding/capsule.h) holds the target too.
#pragma once

#include <filesystem>
#include <span>

#include "base/result.h"
#include "trace/schedule.h"

namespace slalom {

Result<void> save_schedule(const std::filesystem::path& path, const Schedule& schedule);
Result<Schedule> load_schedule(const std::filesystem::path& path);
Result<Schedule> parse_schedule(std::span<const uint8_t> file);

}  // namespace slalom
