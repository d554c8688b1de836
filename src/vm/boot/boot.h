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
  std::filesystem::path initrd;  // empty: for Linux, an initrd with busybox and slalom's agent
  std::string append;            // added to the kernel's command line
  std::string run;               // a command for the agent; empty: a shell
  std::vector<std::string> modules;
  std::vector<ExtraFile> files;
  std::vector<std::filesystem::path> multiboot_modules;
  uint64_t seed = 0;  // for the guest's random numbers
  PcOptions pc;
};

struct Booted {
  std::unique_ptr<Pc> pc;
  std::string kernel;    // as in BootOptions
  std::string identity;  // of its image: equal for equal kernels
};

Result<Booted> boot(const BootOptions& options);

}  // namespace slalom::vm
