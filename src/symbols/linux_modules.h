// The modules that a running Linux has loaded, with their symbols, read from its memory.
//
// The reader follows the kernel's own list with the offsets of its own types. It supports 5.10 to 7.2. Guest
// memory is untrusted: an endless list, impossible sizes and dangling pointers are errors. Symbols of a
// module's initialisation code exist only while that code runs, as in the guest's /proc/kallsyms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbols/btf.h"
#include "symbols/guest_memory.h"
#include "symbols/symbol_table.h"

namespace slalom {

struct LinuxModule {
  struct Region {
    uint64_t start = 0;
    uint64_t size = 0;
    bool operator==(const Region&) const = default;
  };
  std::string name;
  std::vector<Region> regions;  // code, data and the rest, in the kernel's order; none is empty
  std::vector<Symbol> symbols;  // with the module's name; types in small letters
};

// `kernel` and `types` must belong to the running kernel. Returns the newest module first, as the kernel
// lists them.
Result<std::vector<LinuxModule>> read_linux_modules(GuestMemory& memory, const SymbolTable& kernel,
                                                    const Btf& types);

// Returns the symbols of the kernel and of its modules in one table.
SymbolTable with_modules(const SymbolTable& kernel, const std::vector<LinuxModule>& modules);

}  // namespace slalom
