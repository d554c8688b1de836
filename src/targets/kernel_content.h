// KernelContent: the part of a kernel test that a capsule holds (TargetId::content), as text.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "vm/pc/pc.h"

namespace slalom {

struct KernelContent {
  std::string origin;   // path of the test's file; paths in the file are relative to its folder
  std::string machine;  // names everything that the machine was made from; empty if none was made yet
  unsigned version = vm::kMachineVersion;
  std::string kernel;              // instead of the file's: the exact build, or a file; empty: the file's
  std::string module_directory;    // from --modules, instead of the file's own
  std::vector<std::string> scope;  // from --scope, instead of the file's own
  std::string text;                // the file itself
};
std::string to_text(const KernelContent& content);
Result<KernelContent> parse_kernel_content(const std::string& text);

}  // namespace slalom
