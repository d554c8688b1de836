// A made-up ELF file that tells a debugger what is known of a kernel without its vmlinux: names of functions
// and variables, and how to find callers.
//
// It holds no code: a debugger reads that from the machine. Not for kernels whose vmlinux is there, and not
// for modules whose file is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbols/orc.h"
#include "symbols/symbol_table.h"

namespace slalom {

// x86-64. `rows` as read_orc() gives them; none: callers are not known.
std::vector<uint8_t> make_symbol_file(std::span<const Symbol> symbols, std::span<const UnwindRow> rows);

// The .debug_frame section of it.
std::vector<uint8_t> make_debug_frame(std::span<const UnwindRow> rows);

}  // namespace slalom
