// GuestLines: source lines of the kernel in a machine and of its modules, from DWARF.
//
// Debian's kernels come without it: of those, the lines are known where the debug package is installed
// (linux-image-RELEASE-dbg) or a vmlinux is given. Modules built outside the kernel mostly have it
// themselves. Nothing that is explored or saved depends on it: lines are for reports only.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/dwarf.h"
#include "vm/guest/guest_kernel.h"

namespace slalom::vm {

class GuestLines {
 public:
  struct Sources {
    std::filesystem::path vmlinux;  // of this very kernel, by its build id; empty: if one is found
    std::vector<std::filesystem::path> modules;  // the files of which the loaded modules were made
  };
  static Result<GuestLines> open(const GuestKernel& kernel, const Sources& sources, Pc& pc);

  // "mm/shmem.c:2531", with "in NAME" where an inlined function is called in that line; empty: not known.
  // Any thread may ask.
  std::string at(uint64_t address) const;

 private:
  explicit GuestLines(DebugInfo info) : info_(std::move(info)), mutex_(std::make_unique<std::mutex>()) {}

  DebugInfo info_;
  std::unique_ptr<std::mutex> mutex_;
};

}  // namespace slalom::vm
