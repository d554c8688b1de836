#include "symbols/symbol_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace slalom {

namespace {

// The number of symbols below an address that may be too short to cover it before the search gives up: small
// objects inside a larger one.
constexpr int kNested = 16;

}  // namespace

SymbolTable::SymbolTable(std::vector<Symbol> symbols) : symbols_(std::move(symbols)) {
  std::ranges::stable_sort(symbols_, {}, &Symbol::address);
  fill_sizes();
  for (uint32_t i = 0; i < symbols_.size(); ++i) {
    if (!symbols_[i].is_offset) addressed_.push_back(i);
    by_name_.push_back(i);
  }
  // A stable sort keeps symbols with the same name sorted by address.
  std::ranges::stable_sort(by_name_, {}, [&](uint32_t i) { return std::string_view(symbols_[i].name); });
}

void SymbolTable::fill_sizes() {
  std::map<std::string_view, uint64_t> next;   // by module: the address seen last
  std::map<std::string_view, uint64_t> after;  // by module: the next higher address
  for (size_t i = symbols_.size(); i-- > 0;) {
    Symbol& symbol = symbols_[i];
    if (symbol.is_offset) continue;
    const auto [known, is_last] = next.try_emplace(symbol.module, symbol.address);
    if (!is_last && known->second != symbol.address) {
      after[symbol.module] = known->second;
      known->second = symbol.address;
    }
    const auto end = after.find(symbol.module);
    if (symbol.size == 0 && end != after.end()) symbol.size = end->second - symbol.address;
  }
}

SymbolTable SymbolTable::merge(const SymbolTable& first, const SymbolTable& second) {
  std::vector<Symbol> all = first.symbols_;
  all.insert(all.end(), second.symbols_.begin(), second.symbols_.end());
  return SymbolTable(std::move(all));
}

const Symbol* SymbolTable::at(uint64_t address) const {
  const auto address_of = [&](uint32_t i) { return symbols_[i].address; };
  auto above = std::ranges::upper_bound(addressed_, address, {}, address_of);
  for (int tries = 0; tries < kNested && above != addressed_.begin(); ++tries) {
    const uint64_t below = symbols_[*std::prev(above)].address;
    const auto first = std::ranges::lower_bound(addressed_.begin(), above, below, {}, address_of);
    for (auto i = first; i != above; ++i) {
      if (address - below < std::max<uint64_t>(symbols_[*i].size, 1)) return &symbols_[*i];
    }
    above = first;
  }
  return nullptr;
}

std::vector<const Symbol*> SymbolTable::named(std::string_view name) const {
  const auto find = [&](std::string_view wanted, std::optional<std::string_view> module) {
    std::vector<const Symbol*> found;
    const auto name_of = [&](uint32_t i) { return std::string_view(symbols_[i].name); };
    // Not equal_range: clang 14 does not compile its subrange.
    const auto end = std::ranges::upper_bound(by_name_, wanted, {}, name_of);
    for (auto at = std::ranges::lower_bound(by_name_, wanted, {}, name_of); at != end; ++at)
      if (!module || symbols_[*at].module == *module) found.push_back(&symbols_[*at]);
    return found;
  };
  std::vector<const Symbol*> found = find(name, std::nullopt);
  const size_t colon = name.find(':');
  // A name with a colon of its own (C++) takes precedence.
  if (found.empty() && colon != std::string_view::npos)
    found = find(name.substr(colon + 1), name.substr(0, colon));
  return found;
}

std::optional<uint64_t> SymbolTable::address_of(std::string_view name) const {
  const std::vector<const Symbol*> found = named(name);
  if (found.empty()) return std::nullopt;
  return found.front()->address;
}

std::string SymbolTable::describe(uint64_t address) const {
  const Symbol* symbol = at(address);
  if (symbol == nullptr) return fmt::format("{:#x}", address);
  if (symbol->address == address) return symbol->full_name();
  return fmt::format("{}+{:#x}", symbol->full_name(), address - symbol->address);
}

}  // namespace slalom
