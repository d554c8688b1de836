// Loads a Linux kernel as a 64-bit boot loader does (Documentation/arch/x86/boot.rst), without firmware.
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
  std::string command_line;          // complete; see linux_command_line()
  std::vector<uint8_t> initrd;       // empty: none
  std::vector<uint8_t> acpi_tables;  // built for kPlatformTables, with the RSDP first
  uint64_t seed = 0;                 // for the guest's random numbers
};

// Returns the options with which Debian's kernels boot fastest and reproducibly, followed by the user's
// `append`. The user's options win if the kernel takes the last of several. `tsc_khz` is the rate of the
// machine's time-stamp counter.
std::string linux_command_line(uint64_t tsc_khz, const std::string& append);

Result<EntryState> load_linux(Ram& ram, const Image& image, const LinuxOptions& options);

}  // namespace slalom::vm
