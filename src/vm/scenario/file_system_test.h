// Generates the kernel tests of `slalom new fs-test`: random calls on a file system in the guest's memory,
// followed by the file system's checker (SKI, section 6.2).
//
// The test's set-up creates the file system. So tests that differ only in their seed share one prepared
// machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

// The block device that holds the file system. Both keep their data in the guest's memory.
enum class FileSystemDisk : uint8_t {
  Ram,   // /dev/ram0: the thread that submits a request copies the data itself
  Loop,  // /dev/loop0 on a file in a tmpfs: a kernel thread copies, on a CPU without a flow
};

struct FileSystemTestOptions {
  std::string name;
  std::string file_system = "ext4";
  FileSystemDisk disk = FileSystemDisk::Ram;
  std::string kernel = "debian:6.1";
  uint64_t seed = 1;
  unsigned flows = 2;
  unsigned calls = 8;   // of each flow
  bool checked = true;  // run the file system's checker after each execution
};

std::vector<std::string_view> file_systems();  // names of the supported file systems

// Returns the test's text. Fails with advice if the host lacks the programs that create and check the file
// system.
Result<std::string> file_system_test(const FileSystemTestOptions& options);

}  // namespace slalom::vm
