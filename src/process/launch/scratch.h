// Scratch: a private folder for the executions of one worker. It is a copy of a given folder and holds the
// same files at the start of each execution.
//
// The destructor removes it. Not for files that a program writes elsewhere, which stay.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.h"
#include "base/temporary_folder.h"

namespace slalom {

class Scratch {
 public:
  static Result<Scratch> make(const std::filesystem::path& original);

  const std::filesystem::path& folder() const { return folder_.path(); }
  Result<void> restore();  // cheap if nothing was changed

 private:
  // The attributes that show whether a file was changed.
  struct Stamp {
    uint64_t inode = 0, size = 0, mode = 0;
    int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Listing = std::map<std::string, Stamp>;

  Scratch(std::filesystem::path original, TemporaryFolder folder)
      : original_(std::move(original)), folder_(std::move(folder)) {}
  Listing list() const;
  Result<void> fill();

  std::filesystem::path original_;
  TemporaryFolder folder_;
  Listing fresh_;
};

}  // namespace slalom
