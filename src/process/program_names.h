// ProgramNames: what the agents, objects and places of a program are called: threads by the function they
// run, objects and places by the program's symbols.
//
// Shared by all machines of a target, from any thread: reports are made by a machine that need not have
// executed anything. Addresses mean the same in every process of the target, since nothing is loaded at a
// random place.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "preload/protocol.h"
#include "process/zygote.h"
#include "symbols/symbol_table.h"
#include "trace/names.h"

namespace slalom {

class ProgramNames final : public Names {
 public:
  std::string agent(AgentId id) const override;    // "main", "worker#2"
  std::string role(AgentId id) const override;     // "main", "worker"
  std::string object(ObjectId id) const override;  // "lock", "queue+8", "heap@55555576a2c0"
  std::string place(Place pc) const override;      // "worker+0x1f"
  std::string source(Place pc) const override;

  // Where the target's files lie; the same for every process of it.
  void learn_modules(const std::vector<Zygote::Module>& modules);
  void learn_agent(AgentId id, uint64_t entry);
  // Functions in the user's modules that come from the headers of the C++ library, sorted.
  std::vector<preload::Range> wrappers() const;

 private:
  struct Module {
    Zygote::Module where;
    std::optional<SymbolTable> symbols;  // read when first needed
  };

  const Symbol* find(uint64_t address) const;
  const Module* module_of(uint64_t address) const;
  const SymbolTable& symbols_of(Module& module) const;

  mutable std::mutex mutex_;
  mutable std::vector<Module> modules_;
  std::map<AgentId, uint64_t> entries_;
};

}  // namespace slalom
