// Runs another program to its end: explicit arguments, no shell, nothing to read on its standard input.
//
// For the tools of the host that prepare a boot (apt, dpkg). Not for anything a guest takes part in.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

struct Child {
  std::string program;  // looked up in PATH
  std::vector<std::string> arguments;
  std::filesystem::path directory;                               // where it runs; empty: here
  std::vector<std::pair<std::string, std::string>> environment;  // on top of this process's own
};

struct ChildOutput {
  int status = 0;  // its exit code, or 128 + the signal that ended it
  std::string output;
  std::string errors;
};

// An error only if it could not be run at all; `package` is what holds the program.
Result<ChildOutput> run_child(const Child& child, const std::string& package);

}  // namespace slalom::vm
