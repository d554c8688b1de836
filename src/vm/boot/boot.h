// A machine with a kernel in it, ready to run: what `slalom boot`, tests and campaigns start from.
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
  std::string kernel = std::string(kDefaultKernel);  // a fetched kernel's name, or a file
  std::filesystem::path initrd;  // empty: for a Linux kernel one with busybox and slalom's agent
  std::string append;            // to the kernel's command line
  std::string run;               // a command for the agent; empty: a shell
  std::vector<std::string> modules;
  std::vector<ExtraFile> files;
  std::vector<std::filesystem::path> multiboot_modules;
  uint64_t seed = 0;  // of the guest's random numbers
  PcOptions pc;
};

struct Booted {
  std::unique_ptr<Pc> pc;
  std::string kernel;    // as named
  std::string identity;  // of its image: the same for the same kernel
};

Result<Booted> boot(const BootOptions& options);

}  // namespace slalom::vm
