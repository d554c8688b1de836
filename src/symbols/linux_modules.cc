#include "symbols/linux_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/little_endian.h"

namespace slalom {
namespace {

constexpr uint64_t kMaxModules = 4096;
constexpr uint64_t kMaxRegions = 16;
constexpr uint64_t kMaxSymbols = 1 << 19;  // of all modules together
constexpr uint64_t kMaxRegionSize = uint64_t{1} << 31;
constexpr uint64_t kMaxModuleName = 512;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kElfSymbolSize = 24;

// Offsets in this kernel's structs.
struct Layout {
  struct Region {
    uint64_t base = 0, size = 0;
  };
  uint64_t list = 0, name = 0, name_size = 0, state = 0, kallsyms = 0;
  uint64_t symbols = 0, count = 0, strings = 0, letters = 0;  // of struct mod_kallsyms
  std::vector<Region> regions;
  std::optional<int64_t> unformed;  // the state of a module that has only a name so far
};

Result<Layout> layout_of(const Btf& types) {
  std::string missing;
  const auto offset = [&](std::string_view path) {
    const std::optional<Btf::Field> field = types.field(path);
    if (!field) missing = path;
    return field ? field->offset : 0;
  };
  Layout layout{.list = offset("module.list"),
                .name = offset("module.name"),
                .state = offset("module.state"),
                .kallsyms = offset("module.kallsyms"),
                .symbols = offset("mod_kallsyms.symtab"),
                .count = offset("mod_kallsyms.num_symtab"),
                .strings = offset("mod_kallsyms.strtab"),
                .letters = offset("mod_kallsyms.typetab"),
                .unformed = types.enumerator("MODULE_STATE_UNFORMED")};
  if (types.field("module.mem")) {  // since 6.4
    const uint64_t count = std::min(types.element_count("module.mem").value_or(0), kMaxRegions);
    for (uint64_t i = 0; i < count; ++i)
      layout.regions.push_back(
          {offset(fmt::format("module.mem[{}].base", i)), offset(fmt::format("module.mem[{}].size", i))});
  } else {
    for (const std::string_view part : {"core_layout", "init_layout"})
      layout.regions.push_back(
          {offset(fmt::format("module.{}.base", part)), offset(fmt::format("module.{}.size", part))});
  }
  if (!missing.empty())
    return error("this kernel's types have no {}: slalom does not know how it keeps its modules", missing);
  layout.name_size = std::min(types.field("module.name")->size, kMaxModuleName);
  return layout;
}

class Reader {
 public:
  explicit Reader(GuestMemory& memory) : memory_(memory) {}

  std::optional<uint64_t> number(uint64_t address, unsigned size) {
    std::array<uint8_t, 8> bytes = {};
    if (!memory_.read(address, std::span(bytes).first(size))) return std::nullopt;
    return get_le<uint64_t>(bytes, 0);
  }
  bool bytes(uint64_t address, std::span<uint8_t> out) { return memory_.read(address, out); }
  // Reads a text up to a zero, which must come within `most` bytes.
  std::optional<std::string> text(uint64_t address, uint64_t most) {
    std::string text;
    while (text.size() < most) {
      // Never read a page that the text may not reach.
      std::array<uint8_t, 64> chunk;
      const uint64_t size = std::min({uint64_t{chunk.size()}, kPage - address % kPage, most - text.size()});
      if (!memory_.read(address, std::span(chunk).first(size))) return std::nullopt;
      const auto end = std::find(chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(size), 0);
      text.append(chunk.begin(), end);
      if (end != chunk.begin() + static_cast<ptrdiff_t>(size)) return text;
      address += size;
    }
    return std::nullopt;
  }

 private:
  GuestMemory& memory_;
};

Error damaged(std::string_view name, std::string_view what) {
  return error(
      "the guest's module {} cannot be read: {}; is the kernel image the one that runs, and is it stopped "
      "outside of a module's loading?",
      name.empty() ? "list" : name, what);
}

Result<std::vector<LinuxModule::Region>> read_regions(Reader& memory, uint64_t module, const Layout& layout,
                                                      const std::string& name) {
  std::vector<LinuxModule::Region> regions;
  for (const Layout::Region& place : layout.regions) {
    const std::optional<uint64_t> base = memory.number(module + place.base, 8),
                                  size = memory.number(module + place.size, 4);
    if (!base || !size || *size > kMaxRegionSize || *base + *size < *base)
      return damaged(name, "a region cannot be");
    if (*base != 0 && *size != 0) regions.push_back({*base, *size});
  }
  return regions;
}

Result<std::vector<Symbol>> read_symbols(Reader& memory, uint64_t module, const Layout& layout,
                                         const std::string& name, uint64_t most) {
  std::vector<Symbol> symbols;
  const std::optional<uint64_t> table = memory.number(module + layout.kallsyms, 8);
  if (!table) return damaged(name, "it ends early");
  if (*table == 0) return symbols;  // not filled in yet
  const std::optional<uint64_t> entries = memory.number(*table + layout.symbols, 8),
                                count = memory.number(*table + layout.count, 4),
                                strings = memory.number(*table + layout.strings, 8),
                                letters = memory.number(*table + layout.letters, 8);
  if (!entries || !count || !strings || !letters) return damaged(name, "its symbol table is not in memory");
  if (*count > most) return damaged(name, fmt::format("it claims {} symbols", *count));
  for (uint64_t i = 0; i < *count; ++i) {
    std::array<uint8_t, kElfSymbolSize> entry;
    if (!memory.bytes(*entries + i * kElfSymbolSize, entry))
      return damaged(name, "its symbol table is not in memory");
    const std::optional<std::string> text =
        memory.text(*strings + *get_le<uint32_t>(entry, 0), kMaxModuleName);
    const std::optional<uint64_t> letter = memory.number(*letters + i, 1);
    if (!text || !letter) return damaged(name, "a symbol has no name");
    if (text->empty()) continue;
    symbols.push_back({.address = *get_le<uint64_t>(entry, 8),
                       .size = *get_le<uint64_t>(entry, 16),
                       .name = *text,
                       .module = name,
                       .type = static_cast<char>(std::tolower(static_cast<unsigned char>(*letter)))});
  }
  return symbols;
}

}  // namespace

Result<std::vector<LinuxModule>> read_linux_modules(GuestMemory& guest, const SymbolTable& kernel,
                                                    const Btf& types) {
  TRY_ASSIGN(const Layout layout, layout_of(types));
  const std::optional<uint64_t> head = kernel.address_of(":modules");
  if (!head)
    return error(
        "this kernel's symbols do not name its list of modules; was it built without CONFIG_MODULES?");
  Reader memory(guest);
  std::vector<LinuxModule> modules;
  uint64_t left = kMaxSymbols;
  std::optional<uint64_t> link = memory.number(*head, 8);
  while (link && *link != *head) {
    if (modules.size() == kMaxModules) return damaged("", "it does not end");
    const uint64_t module = *link - layout.list;
    const std::optional<std::string> name = memory.text(module + layout.name, layout.name_size);
    const std::optional<uint64_t> state = memory.number(module + layout.state, 4);
    if (!name || name->empty() || !state) return damaged("", "an entry is no module");
    LinuxModule& read = modules.emplace_back();
    read.name = *name;
    if (!layout.unformed || static_cast<int64_t>(*state) != *layout.unformed) {
      TRY_ASSIGN(read.regions, read_regions(memory, module, layout, *name));
      TRY_ASSIGN(read.symbols, read_symbols(memory, module, layout, *name, left));
      left -= read.symbols.size();
    }
    link = memory.number(*link, 8);
  }
  if (!link) return damaged("", "a pointer leads nowhere");
  return modules;
}

SymbolTable with_modules(const SymbolTable& kernel, const std::vector<LinuxModule>& modules) {
  std::vector<Symbol> all;
  for (const LinuxModule& module : modules)
    all.insert(all.end(), module.symbols.begin(), module.symbols.end());
  return SymbolTable::merge(kernel, SymbolTable(std::move(all)));
}

}  // namespace slalom
