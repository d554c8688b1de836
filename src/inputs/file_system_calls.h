// Generates lists of file-system calls from a seed, in the manner of fsstress. The calls use a few names
// below one directory, so that flows with different lists meet at the same files.
//
// The same arguments give the same text on any machine. Calls may fail (a name that does not exist), on
// purpose. Not for judging results: the kernel, its file-system check and the detectors do that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slalom {

struct FileSystemCallsOptions {
  std::string_view directory = "/mnt";  // mount point of the file system
  bool unix_files = true;               // it has links, owners, special files, extended attributes
  bool clones = false;                  // it shares blocks between files (FICLONE)
  bool subvolumes = false;              // btrfs: use subvolumes, snapshots, and a second device
  std::string_view second_device = "/dev/ram1";
  unsigned calls = 8;
  uint64_t seed = 1;
};

// Returns the calls of a flow of a kernel test (docs/howto-kernel-test.md): `calls` lines, one call each,
// different for each flow.
std::string file_system_calls(const FileSystemCallsOptions& options, unsigned flow);

}  // namespace slalom
