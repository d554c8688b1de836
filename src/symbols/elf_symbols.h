// ELF files in memory: the loaded pieces, the bytes of a section, and the symbol table if there is one.
//
// For the symbols of a kernel, a module or a program. vm/boot loads files. The file is untrusted: all
// returned pieces lie within it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/symbol_table.h"

namespace slalom {

struct ElfPiece {
  uint64_t address = 0;  // its address at run time, without relocation
  std::span<const uint8_t> bytes;
};

// Returns the parts of the file that are loaded into memory.
Result<std::vector<ElfPiece>> loaded_pieces(std::span<const uint8_t> file);
// Returns the section; its bytes are empty if there is no such section.
Result<ElfPiece> elf_section(std::span<const uint8_t> file, std::string_view name);

// Returns the functions and variables of .symtab, or else of .dynsym; none for a stripped file. Adds `bias`
// to every address (0 unless a position-independent program was loaded elsewhere).
Result<SymbolTable> read_elf_symbols(std::span<const uint8_t> file, uint64_t bias = 0,
                                     std::string_view module = {});

// Returns the ELF symbols of a vmlinux or, if it is stripped, its kallsyms.
Result<SymbolTable> read_vmlinux_symbols(std::span<const uint8_t> vmlinux);

// Finds the addresses of a module's sections from symbols with the same name in the file and in the loaded
// module. Leaves out sections without such a symbol.
Result<std::map<std::string, uint64_t>> locate_sections(std::span<const uint8_t> file,
                                                        const std::vector<Symbol>& loaded);

}  // namespace slalom
