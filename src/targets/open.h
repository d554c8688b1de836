// Opens targets, from a file that the user names or from the contents of a capsule.
//
// No other folder names concrete machines. The command line, tests and all other users of campaigns get their
// targets here.
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
  // Called with a description of the current work, and with an empty line when the work is done.
  std::function<void(const std::string& line)> progress = [](const std::string&) {};
  std::function<bool()> stop = [] { return false; };  // polled; returns true to give up
  // Used instead of those of a kernel test's file; empty: the file's. Capsules have their own.
  std::string kernel, module_directory;
};

// `settings` are parameters of a toy program, as NAME=NUMBER. `scope` is for a kernel test whose file has
// none.
Result<Target> open_target(const std::string& path, const std::vector<std::string>& settings,
                           const std::vector<std::string>& scope, const OpenOptions& options);
Result<Target> open_target(const TargetId& id, const OpenOptions& options);

}  // namespace slalom
