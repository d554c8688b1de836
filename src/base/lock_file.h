// LockFile: lets only one process at a time work on a file.
//
// The lock is a separate file beside it, NAME.lock, because the file itself may be replaced meanwhile. The
// kernel releases the lock when its process ends, however it ends. A lock file that is left over locks
// nothing.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"

namespace slalom {

class LockFile {
 public:
  // Returns nullopt if another process has the lock. Fails if the lock file cannot exist.
  static Result<std::optional<LockFile>> try_lock(const std::filesystem::path& file);
  LockFile(LockFile&& other) noexcept;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

 private:
  LockFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
};

}  // namespace slalom
