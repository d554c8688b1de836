// Lists of file-system calls made from a number, in the manner of fsstress: a few names below one directory,
// so that flows with different lists meet each other at the same files.
//
// The same arguments give the same text, on any machine. Calls may fail (a name that is not there): that is
// part of it. Not for judging what calls give; the kernel, its file-system check and the detectors do that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slalom {

struct FileSystemCallsOptions {
  std::string_view directory = "/mnt";  // where the file system is mounted
  bool unix_files = true;               // has links, owners, special files, extended attributes
  bool clones = false;                  // shares blocks between files (FICLONE)
  bool subvolumes = false;              // btrfs: subvolumes, snapshots, and a second device
  std::string_view second_device = "/dev/ram1";
  unsigned calls = 8;
  uint64_t seed = 1;
};

// What a flow of a kernel test does (docs/howto-kernel-test.md): `calls` lines, one call each, and different
// ones for each flow.
std::string file_system_calls(const FileSystemCallsOptions& options, unsigned flow);

}  // namespace slalom
