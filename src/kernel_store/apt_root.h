// AptRoot: a private apt. It has one source at a time and keeps all of its files in one directory.
//
// It runs apt's programs: libapt-pkg has no stable ABI, keeps its settings in globals, and every user of
// slalom would need it.
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
  bool trusted = false;           // packages need no signature
  std::filesystem::path keyring;  // the keys that must have signed; empty: Debian's
};

class AptRoot {
 public:
  // Creates the directory and the files that apt expects in it.
  static Result<AptRoot> make(const std::filesystem::path& directory);

  // Fetches the package list of `source`, which replaces the previous list. An error contains apt's reason.
  Result<void> update(const AptSource& source) const;
  // All versions of a package in the list, newest first; empty if there are none.
  Result<std::vector<Stanza>> show(const std::string& package) const;
  Result<std::vector<Stanza>> show(const std::vector<std::string>& packages) const;
  // The names in the list that begin with `prefix`, in no order.
  Result<std::vector<std::string>> packages(const std::string& prefix) const;
  // Downloads one version and returns the path of the .deb. apt has verified its checksum.
  Result<std::filesystem::path> download(const std::string& package, const std::string& version) const;

 private:
  explicit AptRoot(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::filesystem::path directory_;
};

}  // namespace slalom::vm
