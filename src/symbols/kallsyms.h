// kallsyms: the symbol table that a Linux kernel carries for itself, read from its image.
//
// Distributions strip their kernels, but the kernel keeps the names of all its functions and variables in its
// read-only data, compressed with a table of 256 tokens. No symbol says where. slalom finds the tables by
// their structure, which is so strict that no other data matches it. Three generations are known:
//
//   up to 6.3   offsets, base, count, names, markers, [numbers by name,] tokens, token index
//   6.4 on      count, names, markers, tokens, token index, offsets, base, numbers by name
//   7.x         the same, without a base: an offset counts from its own place
//
// Not for modules (linux_modules.h), nor for 32-bit kernels. The bytes are untrusted.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "symbols/symbol_table.h"

namespace slalom {

// `data` holds the kernel's read-only data, and may hold the whole kernel. It lies at `address` if the kernel
// runs without relocation.
Result<SymbolTable> read_kallsyms(std::span<const uint8_t> data, uint64_t address);

}  // namespace slalom
