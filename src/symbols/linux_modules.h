// The modules that a running Linux has loaded, with their symbols, read from its memory.
//
// Follows the kernel's own list with the offsets of its own types: 5.10 up to 7.2. Guest memory is not
// trusted: a list that does not end, sizes that cannot be and pointers that lead nowhere are errors. Symbols
// of a module's initialisation code are there only while it runs, as in the guest's /proc/kallsyms.
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
  std::vector<Symbol> symbols;  // named after their module; types in small letters
};

// `kernel` and `types`: of that very kernel. Newest module first, as the kernel lists them.
Result<std::vector<LinuxModule>> read_linux_modules(GuestMemory& memory, const SymbolTable& kernel,
                                                    const Btf& types);

// The kernel's symbols and its modules' in one table.
SymbolTable with_modules(const SymbolTable& kernel, const std::vector<LinuxModule>& modules);

}  // namespace slalom
