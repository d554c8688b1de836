// Runs a finding of a kernel test under a stock gdb: its execution, forward and backward, from the failure
// on.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/core/command.h"

namespace slalom {

struct KernelDebugOptions {
  enum class Begin : uint8_t { Failure, Start } begin = Begin::Failure;  // where the user gets the prompt
  std::vector<std::string> commands;  // commands for gdb, which then ends; if empty, gdb is interactive
};

// Returns when the user has left gdb. If gdb is not installed, prints its port, so that gdb can be started
// elsewhere.
Result<Exit> debug_kernel(const Finding& finding, const KernelDebugOptions& options);

}  // namespace slalom
