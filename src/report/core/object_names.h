// ObjectNames: the names of a log, with readable names for memory on a program's heap and stacks. Readers
// cannot tell addresses apart, least of all where columns cut them.
//
// A variable gets its own name (m). If another variable has that name, the function is added (m in main). A
// block is named by its type, or by the variable that points to it, with a number and the part of the block
// (node#2->next). Any other lock is named by the expression in the source line that uses it (queue->lock).
// All other objects are named by their kind (mutex#1, block#3).
//
// Blocks are numbered per thread: node#2 is the main thread's second node, node#1.2 the second node of its
// first child. So a block has the same number in every schedule in which its thread allocates the same
// blocks. Other numbers follow the order of the log. Not for titles, which leave out all that distinguishes
// two objects of one kind (detect/core/titles.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

// The object behind a name that does not identify it in the program's source.
struct NamedObject {
  enum class Kind : uint8_t { Block, Object, Local } kind = Kind::Block;
  std::string name;  // "node#2", "m"
  uint64_t address = 0;
  uint64_t size = 0;     // 0 for a variable
  std::string type;      // "node"; empty if unknown, and for a variable
  std::string function;  // the function of a local variable
  // The agent that allocated or freed the block, or whose stack holds the variable; empty for other objects.
  AgentId agent;
  Place place;            // where a block was allocated, or where it was freed if is_freed
  bool is_freed = false;  // its allocation is unknown
};

class ObjectNames final : public Names {
 public:
  ObjectNames(const TraceLog& log, const Names& names);

  // For a trace that is not in memory. Replay it into a BlockReader, then into a Reader. Before that, all
  // names are those of `names`.
  explicit ObjectNames(const Names& names) : names_(names) {}
  class BlockReader final : public EventSink {
   public:
    explicit BlockReader(ObjectNames& names) : names_(names) {}
    void on_accesses(std::span<const Access>, const BatchHeader&) override {}
    void on_event(const Event& event) override;
    void on_end(const Outcome& outcome) override;

   private:
    ObjectNames& names_;
    std::set<ObjectId> freed_;
    std::vector<Event> frees_;  // the first of each address
  };
  class Reader final : public EventSink {
   public:
    explicit Reader(ObjectNames& names) : names_(names) {}
    void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
    void on_event(const Event& event) override;
    void on_end(const Outcome& outcome) override;

   private:
    ObjectNames& names_;
    std::set<ObjectId> accessed_;
  };

  std::string object(ObjectId id) const override;
  std::optional<Local> local(ObjectId id) const override { return names_.local(id); }
  std::optional<Pointed> pointed(ObjectId id) const override { return names_.pointed(id); }
  Block block(Place allocated, uint64_t size) const override { return names_.block(allocated, size); }
  std::string block_part(Place allocated, uint64_t size, uint64_t offset) const override {
    return names_.block_part(allocated, size, offset);
  }
  std::string whole(ObjectId id) const override;
  // Replaces the original names in a text by the names of this object. `whole`: the text is about whole
  // blocks, not about what is at their beginnings.
  std::string renamed(const std::string& text, bool whole = false) const;
  // Returns the objects whose names occur in these texts, in the order of names.
  std::vector<NamedObject> explained(const std::vector<std::string>& texts) const;

  std::string agent(AgentId id) const override { return names_.agent(id); }
  std::string role(AgentId id) const override { return names_.role(id); }
  std::string place(Place pc) const override { return names_.place(pc); }
  std::string source(Place pc) const override { return names_.source(pc); }
  std::string line(Place pc) const override { return names_.line(pc); }
  std::string system_call(AgentId id, uint64_t ordinal, int64_t number) const override {
    return names_.system_call(id, ordinal, number);
  }
  std::string system_result(int64_t value) const override { return names_.system_result(value); }
  Marking marking(Place pc, bool writes) const override { return names_.marking(pc, writes); }

 private:
  struct KnownBlock {
    uint64_t size = 0;
    std::string name;  // "node#2"; empty if its memory was allocated more than once
    std::string type;
    AgentId agent;
    Place place;  // where it was allocated, or where it was freed if is_freed
    bool is_freed = false;
    bool is_typed() const { return !type.empty(); }
  };
  struct Object {
    std::string kind;        // "mutex"
    std::string expression;  // "queue->lock"; empty if unknown
    std::string name;
    std::optional<Local> local;
    std::optional<Pointed> pointed;
    std::string shown_variable;  // "args in main": the name, without the part
  };

  void add_block(const Event& event);
  void note(ObjectId id, OpKind op, Place pc);
  void name_locals();
  void name_others();
  std::string name_pointed(const Pointed& pointed);
  // Returns nullptr if no block or several blocks had the address.
  const std::pair<const uint64_t, KnownBlock>* block_at(uint64_t address) const;
  std::optional<std::string> in_block(uint64_t address) const;
  std::string by_address(const std::string& name, bool whole) const;

  const Names& names_;
  std::map<uint64_t, KnownBlock> blocks_;                            // by address
  std::map<std::pair<AgentId, std::string>, uint32_t> block_count_;  // by agent and name
  std::set<std::string> others_;                                     // names that need no replacement
  std::map<uint64_t, NamedObject> pointed_;                          // by address
  std::map<std::string, Object> objects_;                            // by their original names
  std::vector<std::string> order_;                                   // original names by first use
};

// Returns the expression for the object in the source line of an operation: "queue->lock"; empty if that is
// not clear.
std::string lock_expression(const std::string& source, OpKind op);

}  // namespace slalom
