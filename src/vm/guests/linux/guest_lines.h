// GuestLines: source lines of the machine's kernel and its modules, from DWARF.
//
// Debian's kernels have no DWARF. Their lines are known if the debug package (linux-image-RELEASE-dbg) is
// installed or the user names a vmlinux. Modules built outside of the kernel usually have DWARF. Lines are
// for reports only: nothing that is explored or saved depends on them.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/dwarf/dwarf.h"
#include "trace/names.h"
#include "vm/guests/linux/linux_kernel.h"

namespace slalom::vm {

class GuestLines {
 public:
  struct Sources {
    std::filesystem::path vmlinux;               // of this kernel, checked by build id; empty: look for one
    std::vector<std::filesystem::path> modules;  // the files of the loaded modules
    // Where to look for sources that are not where they were compiled.
    std::filesystem::path folder;
  };
  static Result<GuestLines> open(const GuestKernel& kernel, const Sources& sources, Pc& pc);

  // Returns for example "mm/shmem.c:2531", with "in NAME" if that line calls an inlined function; empty if
  // unknown. Thread-safe.
  std::string at(uint64_t address) const;
  // Whether the source marks the access as racy (vm/guests/linux/marking.h), if the source is available.
  Names::Marking marking(uint64_t address, bool writes) const;
  // The files that the lines come from: a vmlinux, which has no sections here, and modules.
  const std::vector<DebugFile>& files() const { return files_; }

 private:
  GuestLines(DebugInfo info, std::vector<DebugFile> files, std::filesystem::path folder)
      : info_(std::move(info)),
        files_(std::move(files)),
        folder_(std::move(folder)),
        mutex_(std::make_unique<std::mutex>()) {}

  // nullptr if the file cannot be read.
  const std::string* source(const SourcePlace& place) const;

  DebugInfo info_;
  std::vector<DebugFile> files_;
  std::filesystem::path folder_;
  Names::Marking find_marking(uint64_t address, bool writes) const;
  mutable std::map<std::pair<uint64_t, bool>, Names::Marking>
      markings_;  // results of marking(), by its arguments
  mutable std::map<std::filesystem::path, std::vector<std::string>> sources_;
  std::unique_ptr<std::mutex> mutex_;
};

}  // namespace slalom::vm
