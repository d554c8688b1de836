// GuestLines: source lines of the kernel in a machine and of its modules, from DWARF.
//
// Debian's kernels come without it: of those, the lines are known where the debug package is installed
// (linux-image-RELEASE-dbg) or a vmlinux is given. Modules built outside the kernel mostly have it
// themselves. Nothing that is explored or saved depends on it: lines are for reports only.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/dwarf.h"
#include "trace/names.h"
#include "vm/guests/linux/guest_kernel.h"

namespace slalom::vm {

class GuestLines {
 public:
  struct Sources {
    std::filesystem::path vmlinux;  // of this very kernel, by its build id; empty: if one is found
    std::vector<std::filesystem::path> modules;  // the files of which the loaded modules were made
    // Where sources may lie that are not where they were compiled.
    std::filesystem::path folder;
  };
  static Result<GuestLines> open(const GuestKernel& kernel, const Sources& sources, Pc& pc);

  // "mm/shmem.c:2531", with "in NAME" where an inlined function is called in that line; empty: not known.
  // Any thread may ask.
  std::string at(uint64_t address) const;
  // As far as sources are there to be read (vm/guests/linux/marking.h).
  Names::Marking marking(uint64_t address, bool writes) const;
  // Where that is from: a vmlinux, which has no sections here, and modules.
  const std::vector<DebugFile>& files() const { return files_; }

 private:
  GuestLines(DebugInfo info, std::vector<DebugFile> files, std::filesystem::path folder)
      : info_(std::move(info)),
        files_(std::move(files)),
        folder_(std::move(folder)),
        mutex_(std::make_unique<std::mutex>()) {}

  // Null: it cannot be read.
  const std::string* source(const SourcePlace& place) const;

  DebugInfo info_;
  std::vector<DebugFile> files_;
  std::filesystem::path folder_;
  Names::Marking find_marking(uint64_t address, bool writes) const;
  mutable std::map<std::pair<uint64_t, bool>, Names::Marking> markings_;  // that were asked for
  mutable std::map<std::filesystem::path, std::vector<std::string>> sources_;
  std::unique_ptr<std::mutex> mutex_;
};

}  // namespace slalom::vm
