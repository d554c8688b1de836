// What a dynamically linked program of the host needs to run in the guest: its interpreter and its libraries.
//
// Looks where Debian's programs are linked to look; paths of a program's own (RUNPATH) are not followed, a
// library that is found nowhere is an error that names it.
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
  std::string interpreter;          // empty: the program is static
  std::vector<std::string> needed;  // libraries, by the names in the file
};

// Of one ELF file, program or library; nothing for anything else.
SharedObjects shared_objects(std::span<const uint8_t> bytes);

// Calls `use` for each file that `bytes` needs, directly or through others, once: where it is on the host,
// which is also where it goes in the guest.
Result<void> for_each_shared_object(
    const std::string& name, std::span<const uint8_t> bytes,
    const std::function<Result<void>(const std::filesystem::path&, std::vector<uint8_t>)>& use);

}  // namespace slalom::vm
