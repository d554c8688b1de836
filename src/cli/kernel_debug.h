// A finding of a kernel test under a stock gdb: its execution, forward and backward, from where it shows.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace slalom {

struct KernelDebugOptions {
  enum class Begin : uint8_t { Failure, Start } begin = Begin::Failure;  // where the user gets the prompt
  std::vector<std::string> commands;  // what gdb is to do before it ends; none: it asks its user
};

// Until the user has left gdb. Where gdb is not installed, it can be started elsewhere: its port is printed.
Result<Exit> debug_kernel(const Finding& finding, const KernelDebugOptions& options);

}  // namespace slalom
