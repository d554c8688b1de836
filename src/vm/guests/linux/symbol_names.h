// SymbolNames: the names of a running kernel's CPUs and addresses, from its symbols.
//
// For a kernel that boots or works; those of a kernel under test are KernelNames
// (vm/scenario/kernel_names.h).
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "symbols/symbol_table.h"
#include "trace/names.h"
#include "vm/guests/linux/guest_lines.h"

namespace slalom::vm {

class SymbolNames final : public Names {
 public:
  // The table may gain symbols later, as the kernel loads modules.
  explicit SymbolNames(const SymbolTable& symbols) : symbols_(symbols) {}
  void set_lines(GuestLines lines) { lines_.emplace(std::move(lines)); }

  std::string agent(AgentId id) const override { return id.path(); }
  std::string role(AgentId id) const override { return id.path(); }
  std::string object(ObjectId id) const override {
    return symbols_.at(id.raw) != nullptr ? symbols_.describe(id.raw) : fmt::format("{:#x}", id.raw);
  }
  std::string place(Place pc) const override { return symbols_.describe(pc.raw); }
  std::string source(Place) const override { return {}; }
  std::string line(Place pc) const override { return lines_ ? lines_->at(pc.raw) : std::string(); }

 private:
  const SymbolTable& symbols_;
  std::optional<GuestLines> lines_;
};

}  // namespace slalom::vm
