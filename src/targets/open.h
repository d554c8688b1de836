// Opens targets: from the file that a user names, or from what a capsule holds.
//
// This folder is the only one that names concrete machines. A Target is made here once, for the command line,
// for tests and for whatever else runs campaigns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "campaign/target.h"
#include "finding/finding.h"

namespace slalom {

// A kernel test boots a kernel before it can be explored, which takes a while.
struct OpenOptions {
  // Called with what is being done, and with an empty line when it is done.
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };  // asked now and then; true gives up
};

// `settings`: parameters of a toy program, as NAME=NUMBER. `scope`: of a kernel test whose file has none.
Result<Target> open_target(const std::string& path, const std::vector<std::string>& settings,
                           const std::vector<std::string>& scope, const OpenOptions& options);
Result<Target> open_target(const TargetId& id, const OpenOptions& options);

}  // namespace slalom
