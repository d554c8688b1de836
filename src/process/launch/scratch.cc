#include "process/launch/scratch.h"

#include <sys/stat.h>

#include <utility>

namespace slalom {

namespace fs = std::filesystem;

Result<Scratch> Scratch::make(const fs::path& original) {
  std::error_code trouble;
  if (!fs::is_directory(original, trouble)) return error("there is no folder {}", original.string());
  TRY_ASSIGN(TemporaryFolder folder, TemporaryFolder::make("scratch"));
  Scratch scratch(original, std::move(folder));
  TRY(scratch.fill());
  return scratch;
}

Result<void> Scratch::fill() {
  std::error_code trouble;
  fs::copy(original_, folder(), fs::copy_options::recursive | fs::copy_options::copy_symlinks, trouble);
  if (trouble)
    return error("{} cannot be copied to {}: {}", original_.string(), folder().string(), trouble.message());
  fresh_ = list();
  return {};
}

Scratch::Listing Scratch::list() const {
  Listing listing;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder(), ignored)) {
    struct stat info = {};
    if (lstat(entry.path().c_str(), &info) != 0) continue;
    listing[entry.path().string()] = {info.st_ino, static_cast<uint64_t>(info.st_size), info.st_mode,
                                      info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  }
  return listing;
}

Result<void> Scratch::restore() {
  if (list() == fresh_) return {};
  std::error_code trouble;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(), trouble)) {
    std::error_code ignored;
    fs::remove_all(entry.path(), ignored);
  }
  return fill();
}

}  // namespace slalom
