// The kernel tests that `slalom new fs-test` writes: generated calls on a file system in the guest's memory,
// with its checker afterwards (SKI, section 6.2).
//
// The file system is made at set-up, so tests that differ in their seed only share one prepared machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

// What the file system lies on, in the guest's memory either way.
enum class FileSystemDisk : uint8_t {
  Ram,   // /dev/ram0: whoever submits a request does the copying
  Loop,  // /dev/loop0, before a file in a tmpfs: a kernel thread does it, on a CPU that no flow has
};

struct FileSystemTestOptions {
  std::string name;
  std::string file_system = "ext4";
  FileSystemDisk disk = FileSystemDisk::Ram;
  std::string kernel = "debian:6.1";
  uint64_t seed = 1;
  unsigned flows = 2;
  unsigned calls = 8;   // of each flow
  bool checked = true;  // by the file system's own checker, after each execution
};

std::vector<std::string_view> file_systems();  // that there are tests for

// The test's text. Fails with advice where the host lacks the programs that make and check the file system.
Result<std::string> file_system_test(const FileSystemTestOptions& options);

}  // namespace slalom::vm
