// GuestKernel: what is known of the kernel in a machine before it runs: its symbols and types. And how its
// memory is read while a CPU is in the middle of something, without leaving a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "symbols/btf.h"
#include "symbols/symbol_table.h"
#include "vm/pc.h"

namespace slalom::vm {

struct GuestKernel {
  SymbolTable symbols;
  std::optional<Btf> types;
};

// `kernel`: as BootOptions names it. Modules are not in it: see with_loaded_modules().
Result<GuestKernel> load_guest_kernel(const std::string& kernel);
// The symbols with those of the modules that are loaded now. Without types, or before the kernel has set up
// its list of modules, they are the kernel's own.
SymbolTable with_loaded_modules(const GuestKernel& kernel, Pc& pc);

// By the virtual addresses of a CPU, RAM only. Untrusted.
bool read_quietly(const Cpu& cpu, uint64_t address, std::span<uint8_t> out);
std::optional<uint64_t> read_word(const Cpu& cpu, uint64_t address);
// Up to a zero or `most` bytes, or as far as memory goes.
std::string read_string(const Cpu& cpu, uint64_t address, size_t most);

}  // namespace slalom::vm
