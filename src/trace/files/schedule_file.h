// A schedule in a file of its own. It replays against a target the user names; a capsule (finding/capsule.h)
// also holds the target.
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
