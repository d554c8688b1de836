// KernelContent: what a capsule holds of a kernel test (TargetId::content), as text.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "vm/pc/pc.h"

namespace slalom {

struct KernelContent {
  std::string origin;   // where the test's file was; paths in it are relative to that
  std::string machine;  // names all that the machine was made from; empty: nobody has made it yet
  unsigned version = vm::kMachineVersion;
  std::vector<std::string> scope;  // by --scope, instead of the file's own
  std::string text;                // the file itself
};
std::string to_text(const KernelContent& content);
Result<KernelContent> parse_kernel_content(const std::string& text);

}  // namespace slalom
