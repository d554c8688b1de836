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
#include <utility>
#include <vector>

#include "preload/protocol.h"
#include "process/launch/zygote.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/symbol_table.h"
#include "trace/names.h"
#include "trace/sight.h"

namespace slalom {

class ProgramNames final : public Names {
 public:
  std::string agent(AgentId id) const override;  // "main", "worker#2", "lambda:12#2" (a lambda of line 12)
  std::string role(AgentId id) const override;   // "main", "worker"
  std::string object(
      ObjectId id) const override;  // "lock", "queue.count", "heap@55555576a2c0"; without -g "queue+8"
  std::string place(Place pc) const override;   // "queue.c:12 (push)"; without -g "push+0x1f"
  std::string source(Place pc) const override;  // the text of that line, if its file is here

  std::optional<Local> local(ObjectId id) const override;
  std::optional<Pointed> pointed(ObjectId id) const override;
  Block block(Place allocated, uint64_t size) const override;
  std::string block_part(Place allocated, uint64_t size, uint64_t offset) const override;

  // Where the target's files lie; the same for every process of it.
  void learn_modules(const std::vector<Zygote::Module>& modules);
  std::vector<Zygote::Module> modules() const;  // and those that were added
  // One that was loaded after main() began, for the `instance`th time in its execution. Where that is depends
  // on the schedule: gives the address at which it is known here instead.
  uint64_t add_module(const std::string& path, uint32_t instance, uint64_t size);
  static bool is_of_added(uint64_t address) { return address - kAdded < kAddedSize; }
  void learn_agent(AgentId id, uint64_t entry);
  void forget_agents();  // those of another target are next
  // An address on that agent's stack, in a frame as it is now and as it was before it was used. If it has
  // several names, it has none.
  void learn_local(uint64_t address, const StackFrame& now, const StackFrame& before, AgentId agent);
  bool is_user_code(uint64_t pc) const;
  bool is_unnamed(uint64_t address) const;  // in no variable with an address of its own
  // An object that a pointer in the code at `pc` pointed to when the address in it was used. If one has
  // several types, it has none. False: the pointer says nothing about it.
  bool learn_object(uint64_t pc, const DebugType& type, uint64_t begin, uint64_t address,
                    const std::string& pointer);
  std::vector<PointerVariable> pointers(const StackFrame& frame) const;
  void forget_locals();  // and objects: those of another execution are next
  // Of the module that begins there: every function with code of its own, and every place where one was
  // inlined; by their symbols.
  struct Code {
    std::string symbol;
    std::vector<preload::Range> ranges;
    bool inlined = false;
  };
  std::vector<Code> code_of(uint64_t begin) const;
  bool may_load() const;  // does one of the modules use dlopen()?
  // Which memory accesses show: those of code that was built with -fsanitize=thread.
  Sight sight() const;
  bool defines(const std::string& path, const std::string& function) const;
  // Variables of that symbol in the user's modules.
  std::vector<preload::Range> variables(const std::string& symbol) const;
  // Functions in the user's modules (without those that were added), or in the one that begins there, that
  // come from the headers of the C++ library, sorted.
  std::vector<preload::Range> wrappers() const;
  std::vector<preload::Range> wrappers(uint64_t begin) const;

 private:
  // Where those are known that were added: above what allocators like to ask for, below all else.
  static constexpr uint64_t kAdded = uint64_t{1} << 45, kAddedSize = uint64_t{1} << 45;

  struct Module {
    Zygote::Module where;
    uint32_t instance = 0;               // of one that was added: counted from 1
    std::optional<SymbolTable> symbols;  // read when first needed
    std::optional<DebugInfo> debug;      // of one of the user's; likewise
    bool debug_tried = false;
  };

  // A line of the user's own: not of a header of the system, if it was inlined from there.
  struct Line {
    std::string file;
    int number = 0;
    std::string function;
  };

  struct Found {
    const Symbol* symbol = nullptr;
    Module* module = nullptr;
  };
  // What is known of a block, by where it was allocated and its size.
  struct KnownBlock {
    Block words;
    std::optional<DebugType> type;  // of its elements, as far as these can be told apart
    uint64_t first = 0;             // where they begin
    uint64_t element = 0;           // the size of one
    bool is_array = false;
  };

  Found find_with_module(uint64_t address) const;
  const Symbol* find(uint64_t address) const { return find_with_module(address).symbol; }
  std::string global(uint64_t address) const;  // empty: no symbol covers it
  const KnownBlock& known_block(uint64_t pc, uint64_t size) const;
  KnownBlock read_block(uint64_t pc, uint64_t size) const;
  std::string source_of(uint64_t pc) const;
  std::string lambda_line(
      uint64_t entry) const;  // ":12", of a thread that begins there; empty: none, or unknown
  const DebugInfo* debug_of(uint64_t address) const;  // null: there is none
  const DebugInfo* debug_of(Module* module) const;
  std::vector<std::string> unseen_units(const Module& module) const;
  const Line* line_of(uint64_t pc) const;  // null: not known
  Module* module_of(uint64_t address) const;
  const SymbolTable& symbols_of(Module& module) const;

  mutable std::mutex mutex_;
  mutable std::vector<Module> modules_;
  std::map<AgentId, uint64_t> entries_;
  mutable std::map<uint64_t, std::string> lambda_lines_;                // by the entry of a thread
  mutable std::map<uint64_t, std::string> globals_;                     // what was asked before
  mutable std::map<std::pair<uint64_t, uint64_t>, KnownBlock> blocks_;  // likewise, by place and size
  struct Object {
    DebugType type;
    uint64_t size = 0;
    bool has_several = false;
  };
  std::map<uint64_t, Object> pointed_;               // by where they begin
  std::map<uint64_t, std::optional<Local>> locals_;  // none: it has several names
  mutable std::map<uint64_t, Line> lines_;           // what was asked before; file empty: not known
};

}  // namespace slalom
