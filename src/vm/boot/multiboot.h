// Loads a multiboot 1 kernel: the form that most teaching kernels have.
//
// As the specification says, all of them are entered in 32-bit protected mode without paging, those in 64-bit
// ELF files too. Not provided: symbols, drives, a configuration table, APM, graphics modes. A kernel that
// demands one of them is refused; one that would merely like it sees that it is not there.
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

// Where in the file its header is, if it has one.
std::optional<uint64_t> find_multiboot_header(std::span<const uint8_t> file);
Result<MultibootLayout> multiboot_layout(std::span<const uint8_t> file);

struct MultibootModule {
  std::vector<uint8_t> bytes;
  std::string command_line;
};

struct MultibootOptions {
  std::string command_line;
  std::vector<MultibootModule> modules;
  std::vector<uint8_t> acpi_tables;  // made for kPlatformTables, where kernels look for the RSDP
};

Result<EntryState> load_multiboot(Ram& ram, const Image& image, const MultibootOptions& options);

}  // namespace slalom::vm
