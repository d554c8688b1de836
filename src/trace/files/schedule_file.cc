#include "trace/files/schedule_file.h"

#include "trace/files/serialise.h"

namespace slalom {

Result<void> save_schedule(const std::filesystem::path& path, const Schedule& schedule) {
  return save_file(path, FileKind::Schedule, schedule);
}

Result<Schedule> load_schedule(const std::filesystem::path& path) {
  return load_file<Schedule>(path, FileKind::Schedule);
}

Result<Schedule> parse_schedule(std::span<const uint8_t> file) {
  return from_file<Schedule>(FileKind::Schedule, file);
}

}  // namespace slalom
