// GuestKernel: what is known of the machine's kernel before it runs: its files, symbols and types.
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
  std::string identity;  // of its image, as in Booted
  SymbolTable symbols;
  std::optional<Btf> types;
};

// `kernel` is named as in BootOptions. Modules are not included; see with_loaded_modules().
Result<GuestKernel> load_guest_kernel(const std::string& kernel);  // takes about 0.2 s
// Returns the symbols of the kernel and of the modules that are loaded now. Only those of the kernel, if its
// types are unknown or it has not yet set up its list of modules.
SymbolTable with_loaded_modules(const GuestKernel& kernel, Pc& pc);

}  // namespace slalom::vm
