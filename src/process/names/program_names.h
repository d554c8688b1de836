// ProgramNames: the names of a program's agents, objects and places. Threads are named by the function that
// they run, objects and places by the program's symbols.
//
// All machines of a target share one object, from any thread, because the machine that makes a report need
// not have executed anything. Addresses mean the same in every process of the target, because nothing is
// loaded at a random address.
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
  std::string source(Place pc) const override;  // the text of that line, if its file exists here

  std::optional<Local> local(ObjectId id) const override;
  std::optional<Pointed> pointed(ObjectId id) const override;
  Block block(Place allocated, uint64_t size) const override;
  std::string block_part(Place allocated, uint64_t size, uint64_t offset) const override;

  // Learns where the target's files lie, which is the same for every process of the target.
  void learn_modules(const std::vector<Zygote::Module>& modules);
  std::vector<Zygote::Module> modules() const;  // includes those that were added
  // Adds a module that was loaded after main() began, for the `instance`th time in its execution. Its real
  // address depends on the schedule. Returns the address that stands for it here instead.
  uint64_t add_module(const std::string& path, uint32_t instance, uint64_t size);
  static bool is_of_added(uint64_t address) { return address - kAdded < kAddedSize; }
  void learn_agent(AgentId id, uint64_t entry);
  void forget_agents();  // call it before learning those of another target
  // Names an address on that agent's stack. `now` and `before` are its frame now and before the address was
  // used. An address that gets several names has none.
  void learn_local(uint64_t address, const StackFrame& now, const StackFrame& before, AgentId agent);
  bool is_user_code(uint64_t pc) const;
  bool is_unnamed(uint64_t address) const;  // true if no variable with a fixed address covers it
  // Learns the object at `begin`, because a pointer in the code at `pc` pointed to it when `address`, inside
  // it, was used. An object that gets several types has none. Returns false if the pointer says nothing about
  // the address.
  bool learn_object(uint64_t pc, const DebugType& type, uint64_t begin, uint64_t address,
                    const std::string& pointer);
  std::vector<PointerVariable> pointers(const StackFrame& frame) const;
  void forget_locals();  // and objects; call it before learning those of another execution
  // Code of a module: a function with code of its own, or a place where one was inlined.
  struct Code {
    std::string symbol;
    std::vector<preload::Range> ranges;
    bool inlined = false;
  };
  // Returns all code of the module that begins at `begin`.
  std::vector<Code> code_of(uint64_t begin) const;
  bool may_load() const;  // whether one of the modules uses dlopen()
  // Says which memory accesses are visible: those of code that was built with -fsanitize=thread.
  Sight sight() const;
  bool defines(const std::string& path, const std::string& function) const;
  // Returns the variables of that symbol in the user's modules.
  std::vector<preload::Range> variables(const std::string& symbol) const;
  // Returns the functions that come from the headers of the C++ library, sorted. The first form looks in the
  // user's modules without those that were added, the second one in the module that begins at `begin`.
  std::vector<preload::Range> wrappers() const;
  std::vector<preload::Range> wrappers(uint64_t begin) const;

 private:
  // The addresses that stand for added modules: above the addresses that allocators prefer, below all other
  // mappings.
  static constexpr uint64_t kAdded = uint64_t{1} << 45, kAddedSize = uint64_t{1} << 45;

  struct Module {
    Zygote::Module where;
    uint32_t instance = 0;               // counted from 1 for an added module, else 0
    std::optional<SymbolTable> symbols;  // read when first needed
    std::optional<DebugInfo> debug;      // read when first needed; only for the user's modules
    bool debug_tried = false;
  };

  // A line of the user's code. For code inlined from a system header, the line into which it was inlined.
  struct Line {
    std::string file;
    int number = 0;
    std::string function;
  };

  struct Found {
    const Symbol* symbol = nullptr;
    Module* module = nullptr;
  };
  // A block of the heap, as derived from the place of its allocation and its size.
  struct KnownBlock {
    Block words;
    std::optional<DebugType> type;  // of its elements; empty if unknown
    uint64_t first = 0;             // offset of the first element
    uint64_t element = 0;           // size of an element
    bool is_array = false;
  };

  Found find_with_module(uint64_t address) const;
  const Symbol* find(uint64_t address) const { return find_with_module(address).symbol; }
  std::string global(uint64_t address) const;  // empty if no symbol covers it
  const KnownBlock& known_block(uint64_t pc, uint64_t size) const;
  KnownBlock read_block(uint64_t pc, uint64_t size) const;
  std::string source_of(uint64_t pc) const;
  // Returns ":12" for a thread that begins in a lambda at `entry`; empty if there is no lambda or the line is
  // unknown.
  std::string lambda_line(uint64_t entry) const;
  const DebugInfo* debug_of(uint64_t address) const;  // nullptr if there is none
  const DebugInfo* debug_of(Module* module) const;
  std::vector<std::string> unseen_units(const Module& module) const;
  const Line* line_of(uint64_t pc) const;  // nullptr if unknown
  Module* module_of(uint64_t address) const;
  const SymbolTable& symbols_of(Module& module) const;

  mutable std::mutex mutex_;
  mutable std::vector<Module> modules_;
  std::map<AgentId, uint64_t> entries_;
  mutable std::map<uint64_t, std::string> lambda_lines_;                // by the entry of a thread
  mutable std::map<uint64_t, std::string> globals_;                     // cache, by address
  mutable std::map<std::pair<uint64_t, uint64_t>, KnownBlock> blocks_;  // cache, by place and size
  struct Object {
    DebugType type;
    uint64_t size = 0;
    bool has_several = false;
  };
  std::map<uint64_t, Object> pointed_;               // by address
  std::map<uint64_t, std::optional<Local>> locals_;  // an empty value means several names
  mutable std::map<uint64_t, Line> lines_;           // cache, by pc; `file` is empty if unknown
};

}  // namespace slalom
