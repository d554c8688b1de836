// Runs another program to its end, with explicit arguments, without a shell and with empty standard input.
//
// For host tools that prepare a boot (apt, dpkg). Not for anything in which a guest takes part.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slalom {

struct Child {
  std::string program;  // searched in PATH
  std::vector<std::string> arguments;
  std::filesystem::path directory;                               // working directory; empty: the caller's
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's environment
};

struct ChildOutput {
  int status = 0;  // exit code, or 128 + the signal that ended it
  std::string output;
  std::string errors;
};

// Fails only if the program could not run at all. `package`: the Debian package of the program, for the
// message.
Result<ChildOutput> run_child(const Child& child, const std::string& package);

}  // namespace slalom
