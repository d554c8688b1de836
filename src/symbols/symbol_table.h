// SymbolTable: address <-> name, for a kernel and its modules, or a program and its libraries.
//
// A value that never changes. The constructor sorts by address. Symbols with the same address keep their
// order, and the first of them names the address. The table knows neither lines nor types (dwarf.h, btf.h),
// nor the source of symbols (kallsyms.h, elf_symbols.h, linux_modules.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slalom {

struct Symbol {
  uint64_t address = 0;
  uint64_t size = 0;  // 0 if unknown
  std::string name;
  std::string module;  // empty for the kernel itself and for the program
  char type = '?';     // as nm and /proc/kallsyms print it; t and T are code
  // The address is an offset or a constant (per-CPU variables of older kernels), so the symbol is found by
  // name only.
  bool is_offset = false;

  // A guess from the letter: kernels of 7.x give much of their data the type T, too.
  bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
  // Returns "module:name", or just the name.
  std::string full_name() const { return module.empty() ? name : module + ":" + name; }
  bool operator==(const Symbol&) const = default;
};

class SymbolTable {
 public:
  SymbolTable() = default;
  // A symbol without a size reaches to the next higher address of its own module. A module's last symbol
  // covers only its own address.
  explicit SymbolTable(std::vector<Symbol> symbols);

  // Returns the symbols of both. Symbols with the same address keep this order.
  static SymbolTable merge(const SymbolTable& first, const SymbolTable& second);

  // Sorted by address.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  size_t size() const { return symbols_.size(); }

  // Returns the symbol that covers the address; nullptr if none does.
  const Symbol* at(uint64_t address) const;
  // Returns all symbols with that name, by address: static functions of different files may share a name.
  // "name" matches in any module, "module:name" only in that module.
  std::vector<const Symbol*> named(std::string_view name) const;
  // Returns the lowest address with that name.
  std::optional<uint64_t> address_of(std::string_view name) const;
  // Returns "name", "name+0x12" or "module:name+0x12"; the address in hexadecimal if no symbol covers it.
  std::string describe(uint64_t address) const;

 private:
  void fill_sizes();

  std::vector<Symbol> symbols_;
  std::vector<uint32_t> addressed_;  // indices of the symbols that are no offsets; at() searches them
  std::vector<uint32_t> by_name_;
};

}  // namespace slalom
