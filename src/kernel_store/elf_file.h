// Reads the tables of an ELF file, 32-bit or 64-bit: only what a loader and a module resolver need.
//
// libelf reads the tables, but checks neither what they refer to nor whether they are whole. Here every
// offset and size is checked against the file, so users of a parsed file need no further checks. A file is
// not trusted. Symbols and debug information belong to symbols/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

struct ElfSegment {
  uint32_t type = 0;
  uint64_t virtual_address = 0;
  uint64_t physical_address = 0;
  uint64_t offset = 0;     // in the file
  uint64_t file_size = 0;  // never beyond the end of the file
  uint64_t memory_size = 0;
};

struct ElfSection {
  std::string name;
  uint32_t type = 0;
  uint64_t offset = 0;
  uint64_t size = 0;  // in the file; never beyond its end
};

struct ElfFile {
  static constexpr uint32_t kLoad = 1, kInterpreter = 3, kNote = 4;
  static constexpr uint16_t kRelocatable = 1, kExecutable = 2, kShared = 3;
  static constexpr uint16_t k386 = 3, kX86_64 = 62;

  bool is_64bit = false;
  uint16_t type = 0;
  uint16_t machine = 0;
  uint64_t entry = 0;
  std::vector<ElfSegment> segments;
  std::vector<ElfSection> sections;
};

bool is_elf(std::span<const uint8_t> bytes);
Result<ElfFile> parse_elf(std::span<const uint8_t> bytes);

// The GNU build id in hexadecimal; empty if there is none.
std::string build_id(const ElfFile& elf, std::span<const uint8_t> bytes);

}  // namespace slalom::vm
