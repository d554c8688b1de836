// A private apt: one source at a time, all of its files below one directory.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernel_store/control_file.h"

namespace slalom::vm {

struct AptSource {
  std::string uri;
  std::string suite;
  bool trusted = false;  // packages need no signature
};

class AptRoot {
 public:
  // Makes the directory and what apt expects in it.
  static Result<AptRoot> make(const std::filesystem::path& directory);

  // Fetches the package list of `source`, which replaces the one before. The error is apt's reason.
  Result<void> update(const AptSource& source) const;
  // All versions of a package in that list, newest first; none if it is not there.
  Result<std::vector<Stanza>> show(const std::string& package) const;
  // Downloads one version; answers the .deb, whose checksum apt has compared.
  Result<std::filesystem::path> download(const std::string& package, const std::string& version) const;

 private:
  explicit AptRoot(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::filesystem::path directory_;
};

}  // namespace slalom::vm
