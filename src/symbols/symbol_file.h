// A synthetic ELF file that gives a debugger what is known of a kernel without its vmlinux: names of
// functions and variables, and rules to find callers.
//
// It holds no code: a debugger reads that from the machine. Not for kernels with a vmlinux, and not for
// modules with a file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbols/orc.h"
#include "symbols/symbol_table.h"

namespace slalom {

// Makes the file, for x86-64. `rows` come from read_orc(); if empty, callers are unknown.
std::vector<uint8_t> make_symbol_file(std::span<const Symbol> symbols, std::span<const UnwindRow> rows);

// Makes the file's .debug_frame section.
std::vector<uint8_t> make_debug_frame(std::span<const UnwindRow> rows);

}  // namespace slalom
