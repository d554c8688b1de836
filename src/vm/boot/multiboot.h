// Loads a multiboot 1 kernel, the format of most teaching kernels.
//
// As the specification requires, all kernels are entered in 32-bit protected mode without paging, also those
// in 64-bit ELF files. Not provided: symbols, drives, a configuration table, APM, graphics modes. A kernel
// that requires one of these is refused. A kernel that only requests it finds it missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vm/boot/image.h"
#include "vm/pc/entry_state.h"

namespace slalom::vm {

struct MultibootLayout {
  MultibootHeader header;
  std::vector<ImageSegment> segments;
  Physical entry = 0;
};

// The offset of the header in the file; empty if there is none.
std::optional<uint64_t> find_multiboot_header(std::span<const uint8_t> file);
Result<MultibootLayout> multiboot_layout(std::span<const uint8_t> file);

struct MultibootModule {
  std::vector<uint8_t> bytes;
  std::string command_line;
};

struct MultibootOptions {
  std::string command_line;
  std::vector<MultibootModule> modules;
  std::vector<uint8_t> acpi_tables;  // built for kPlatformTables, where kernels look for the RSDP
};

Result<EntryState> load_multiboot(Ram& ram, const Image& image, const MultibootOptions& options);

}  // namespace slalom::vm
