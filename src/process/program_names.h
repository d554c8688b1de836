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
#include "symbols/dwarf.h"
#include "symbols/symbol_table.h"
#include "trace/names.h"

namespace slalom {

class ProgramNames final : public Names {
 public:
  std::string agent(AgentId id) const override;    // "main", "worker#2"
  std::string role(AgentId id) const override;     // "main", "worker"
  std::string object(ObjectId id) const override;  // "lock", "queue+8", "heap@55555576a2c0"
  std::string place(Place pc) const override;      // "queue.c:12 (push)"; without -g "push+0x1f"
  std::string source(Place pc) const override;     // the text of that line, if its file is here

  // Where the target's files lie; the same for every process of it.
  void learn_modules(const std::vector<Zygote::Module>& modules);
  std::vector<Zygote::Module> modules() const;
  void learn_agent(AgentId id, uint64_t entry);
  void forget_agents();  // those of another target are next
  // Every function with code of its own, and every place where one was inlined; by their symbols.
  struct Code {
    std::string symbol;
    std::vector<preload::Range> ranges;
    bool inlined = false;
  };
  std::vector<Code> all_code() const;
  bool defines(const std::string& path, const std::string& function) const;
  // Variables of that symbol in the user's modules.
  std::vector<preload::Range> variables(const std::string& symbol) const;
  // Functions in the user's modules that come from the headers of the C++ library, sorted.
  std::vector<preload::Range> wrappers() const;

 private:
  struct Module {
    Zygote::Module where;
    std::optional<SymbolTable> symbols;  // read when first needed
  };

  // A line of the user's own: not of a header of the system, if it was inlined from there.
  struct Line {
    std::string file;
    int number = 0;
    std::string function;
  };

  const Symbol* find(uint64_t address) const;
  const DebugInfo* debug_info() const;     // null: there is none
  const Line* line_of(uint64_t pc) const;  // null: not known
  const Module* module_of(uint64_t address) const;
  const SymbolTable& symbols_of(Module& module) const;

  mutable std::mutex mutex_;
  mutable std::vector<Module> modules_;
  std::map<AgentId, uint64_t> entries_;
  mutable std::optional<DebugInfo> debug_;  // of the user's modules; opened when first needed
  mutable bool debug_tried_ = false;
  mutable std::map<uint64_t, Line> lines_;  // what was asked before; file empty: not known
};

}  // namespace slalom
