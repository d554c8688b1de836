// Finds what a dynamically linked program of the host needs to run in the guest: its interpreter and
// libraries.
//
// Searches the directories of Debian's dynamic linker. Ignores a program's own paths (RUNPATH). A missing
// library is an error that names it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace slalom::vm {

struct SharedObjects {
  std::string interpreter;          // empty if the program is static
  std::vector<std::string> needed;  // libraries, by their names in the file
};

// For one ELF file, program or library. Empty for any other file.
SharedObjects shared_objects(std::span<const uint8_t> bytes);

// Calls `use` once for each file that `bytes` needs, directly or indirectly, with its path on the host. The
// path in the guest is the same.
Result<void> for_each_shared_object(
    const std::string& name, std::span<const uint8_t> bytes,
    const std::function<Result<void>(const std::filesystem::path&, std::vector<uint8_t>)>& use);

}  // namespace slalom::vm
