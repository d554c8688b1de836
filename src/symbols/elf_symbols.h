// ELF files in memory: the pieces that are loaded, a section's bytes, and the symbol table where there is
// one.
//
// For what symbols need of a kernel, a module or a program; loading is vm/boot's job. The file is not
// trusted: all pieces lie within it.
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
  uint64_t address = 0;  // where it lies when it runs, without relocation
  std::span<const uint8_t> bytes;
};

// What of a file is loaded into memory.
Result<std::vector<ElfPiece>> loaded_pieces(std::span<const uint8_t> file);
// Empty bytes: there is no such section.
Result<ElfPiece> elf_section(std::span<const uint8_t> file, std::string_view name);

// Functions and variables of .symtab, or else of .dynsym; none in a stripped file. `bias` is added to every
// address (0 unless a position-independent program was loaded elsewhere).
Result<SymbolTable> read_elf_symbols(std::span<const uint8_t> file, uint64_t bias = 0,
                                     std::string_view module = {});

// Of a vmlinux: its ELF symbols, or if it is stripped, its kallsyms.
Result<SymbolTable> read_vmlinux_symbols(std::span<const uint8_t> vmlinux);

// Where the sections of a module's file lie, from symbols that have the same name there and in the loaded
// module. Sections of which no such symbol is known are left out.
Result<std::map<std::string, uint64_t>> locate_sections(std::span<const uint8_t> file,
                                                        const std::vector<Symbol>& loaded);

}  // namespace slalom
