// GuestKernel: what is known of the kernel in a machine before it runs: its symbols and types.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kernel_store/kernel_cache.h"
#include "symbols/btf.h"
#include "symbols/symbol_table.h"
#include "vm/pc/pc.h"

namespace slalom::vm {

struct GuestKernel {
  Kernel files;
  std::string identity;  // of its image, as Booted has it
  SymbolTable symbols;
  std::optional<Btf> types;
};

// `kernel`: as BootOptions names it. Modules are not in it: see with_loaded_modules().
Result<GuestKernel> load_guest_kernel(const std::string& kernel);  // takes about 0.2 s
// The symbols with those of the modules that are loaded now. Without types, or before the kernel has set up
// its list of modules, they are the kernel's own.
SymbolTable with_loaded_modules(const GuestKernel& kernel, Pc& pc);

}  // namespace slalom::vm
