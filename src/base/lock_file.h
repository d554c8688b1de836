// LockFile: makes sure that only one process at a time works on a file.
//
// The lock is a file of its own beside it, NAME.lock, since the file itself may be replaced meanwhile. The
// kernel lets go of the lock when its process ends, however it ends; a lock file that is left over locks
// nothing.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"

namespace slalom {

class LockFile {
 public:
  // nullopt: another process has it. An error: there can be no such file.
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
