// What the parts of DebugInfo share: libdw's session for each file. Only for dwarf.cc and dwarf_variables.cc.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbols/dwarf/dwarf.h"

namespace slalom {

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using DieScopes = std::unique_ptr<Dwarf_Die, FreeMemory>;

inline std::string die_name(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  return name != nullptr ? name : "";
}

inline std::optional<uint64_t> die_number(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0) return std::nullopt;
  return value;
}

// One file. Each has a libdw session of its own: sections of different modules may lie between each other's,
// which one session could not tell apart.
struct DwarfSession {
  struct Range {
    uint64_t start = 0, size = 0;
  };
  DebugFile file;
  std::vector<Range> ranges;  // where its code is; empty: libdw knows
  std::unique_ptr<Dwfl, EndDwfl> dwfl;
  Dwfl_Module* module = nullptr;
  // Variables with an address of their own, by address; read when first asked for.
  struct Variable {
    uint64_t address = 0;
    Dwarf_Die die{};
  };
  std::optional<std::vector<Variable>> globals, statics;  // the latter are those inside functions

  bool holds(uint64_t address) const {
    if (ranges.empty()) return dwfl_addrmodule(dwfl.get(), address) == module;
    return std::ranges::any_of(ranges,
                               [&](const Range& range) { return address - range.start < range.size; });
  }
};

// libdw keeps pointers to all of it.
struct DebugInfo::State {
  std::string search_path;
  char* search_path_pointer = nullptr;
  Dwfl_Callbacks callbacks = {};
  std::vector<std::unique_ptr<DwarfSession>> sessions;
  std::vector<std::filesystem::path> without;

  DwarfSession* holding(uint64_t code) const {
    for (const auto& session : sessions)
      if (session->holds(code)) return session.get();
    return nullptr;
  }
};

}  // namespace slalom
