// Boots: a machine with a kernel in it, ready to run. `slalom boot`, tests and campaigns start from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/initramfs.h"
#include "vm/pc/pc.h"

namespace slalom::vm {

struct BootOptions {
  std::string kernel = std::string(kDefaultKernel);  // the name of a fetched kernel, or a file
  std::filesystem::path initrd;            // empty: for Linux, an initrd with busybox and slalom's agent
  std::string append;                      // added to the kernel's command line
  std::string run;                         // a command for the agent; empty: a shell
  std::vector<std::string> modules;        // names, with parameters: "loop max_loop=4"
  std::filesystem::path module_directory;  // of a user's own kernel; empty: where they usually lie
  std::vector<ExtraFile> files;
  std::vector<std::filesystem::path> multiboot_modules;
  uint64_t seed = 0;  // for the guest's random numbers
  PcOptions pc;
};

struct Booted {
  std::unique_ptr<Pc> pc;
  std::string kernel;    // names exactly this build; for a user's own file, its path
  std::string identity;  // of its image: equal for equal kernels
};

// Finds the kernel, with its modules if some are wanted.
Result<Kernel> kernel_of(const BootOptions& options);

Result<Booted> boot(const BootOptions& options);

}  // namespace slalom::vm
