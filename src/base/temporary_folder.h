// TemporaryFolder: a new, empty folder below the system's folder for temporary files ($TMPDIR). The
// destructor removes it with its contents.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace slalom {

class TemporaryFolder {
 public:
  // `purpose` is a part of the folder's name: "gdb" makes slalom-gdb-x7Tq2p.
  static Result<TemporaryFolder> make(std::string_view purpose);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty after a move
};

}  // namespace slalom
