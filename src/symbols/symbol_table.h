// SymbolTable: address <-> name, for a kernel and its modules, or a program and its libraries.
//
// A value: sorted by address once, when it is made, and never changed. Symbols of one address keep the order
// in which they came, and the first of them names the address. It knows neither lines nor types (dwarf.h,
// btf.h), nor where symbols come from (kallsyms.h, elf_symbols.h, linux_modules.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slalom {

struct Symbol {
  uint64_t address = 0;
  uint64_t size = 0;  // 0: unknown
  std::string name;
  std::string module;  // empty: the kernel itself, or the program
  char type = '?';     // as nm and /proc/kallsyms print it: t and T are code
  // The number is an offset or a constant (per-CPU variables of older kernels): found by name only.
  bool is_offset = false;

  // As far as the letter tells: kernels of 7.x call much of their data T, too.
  bool is_code() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
  // "module:name", or just the name.
  std::string full_name() const { return module.empty() ? name : module + ":" + name; }
  bool operator==(const Symbol&) const = default;
};

class SymbolTable {
 public:
  SymbolTable() = default;
  // A symbol without a size reaches to the next higher address of its own module; the last one of a module
  // covers just its own address.
  explicit SymbolTable(std::vector<Symbol> symbols);

  // Both together; what has the same address stays in this order.
  static SymbolTable merge(const SymbolTable& first, const SymbolTable& second);

  // Sorted by address.
  const std::vector<Symbol>& symbols() const { return symbols_; }
  size_t size() const { return symbols_.size(); }

  // What covers the address; null: nothing does.
  const Symbol* at(uint64_t address) const;
  // All of that name, by address: static functions of different files may share one. "name" finds it in any
  // module, "module:name" in that one.
  std::vector<const Symbol*> named(std::string_view name) const;
  // The lowest address of that name.
  std::optional<uint64_t> address_of(std::string_view name) const;
  // "name", "name+0x12", "module:name+0x12"; an address that nothing covers is itself, in hexadecimal.
  std::string describe(uint64_t address) const;

 private:
  void fill_sizes();

  std::vector<Symbol> symbols_;
  std::vector<uint32_t> addressed_;  // indexes of what is no offset: what at() searches
  std::vector<uint32_t> by_name_;
};

}  // namespace slalom
