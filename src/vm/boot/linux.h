// Loads a Linux kernel the way a 64-bit boot loader would (Documentation/arch/x86/boot.rst), without any
// firmware.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/image.h"
#include "vm/pc/entry_state.h"

namespace slalom::vm {

struct LinuxOptions {
  std::string command_line;          // all of it: see linux_command_line()
  std::vector<uint8_t> initrd;       // empty: none
  std::vector<uint8_t> acpi_tables;  // made for kPlatformTables, the RSDP first
  uint64_t seed = 0;                 // of the guest's random numbers
};

// The options with which Debian's kernels boot fastest and the same every time, then those of the user, which
// win where the kernel takes the last of several. `tsc_khz`: the rate of the machine's time-stamp counter.
std::string linux_command_line(uint64_t tsc_khz, const std::string& append);

Result<EntryState> load_linux(Ram& ram, const Image& image, const LinuxOptions& options);

}  // namespace slalom::vm
