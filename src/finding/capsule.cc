#include "finding/capsule.h"

#include "trace/serialise.h"

namespace slalom {

Result<void> save_capsule(const std::filesystem::path& path, const Finding& finding) {
  return save_file(path, FileKind::Capsule, finding);
}

Result<Finding> load_capsule(const std::filesystem::path& path) {
  std::error_code none;
  const bool is_folder = std::filesystem::is_directory(path, none);
  return load_file<Finding>(is_folder ? path / kCapsuleName : path, FileKind::Capsule);
}

Result<Finding> parse_capsule(std::span<const uint8_t> file) {
  return from_file<Finding>(FileKind::Capsule, file);
}

}  // namespace slalom
