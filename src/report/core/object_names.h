// ObjectNames: the names of a log, with words for what a program keeps on its heap and its stacks. Addresses
// there say nothing to a reader, and differ where columns cut them.
//
// A variable is called by its name (m), or if another one has that, with its function (m in main). A block is
// called by its type or the variable that points to it, its number and the part of it (node#2->next). Else a
// lock is called as the source line that uses it calls it (queue->lock), and all else by what it is (mutex#1,
// block#3).
//
// Blocks count for each thread: node#2 is the main thread's second node, node#1.2 the second of its first
// thread. So a block has the same number in every schedule in which its thread allocates the same. Other
// numbers count in the order of the log. Not for titles: those leave out what tells two objects of one kind
// apart (detect/core/titles.h).
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

// What is behind a name that the program's source does not have by itself.
struct NamedObject {
  enum class Kind : uint8_t { Block, Object, Local } kind = Kind::Block;
  std::string name;  // "node#2", "m"
  uint64_t address = 0;
  uint64_t size = 0;      // unless it is a variable
  std::string type;       // "node"; of a block, if it is known
  std::string function;   // of a local variable: whose
  AgentId agent;          // who allocated or freed it, or on whose stack it is; of others nobody
  Place place;            // of a block: where it was allocated, or if that is not known,
  bool is_freed = false;  // freed
};

class ObjectNames final : public Names {
 public:
  ObjectNames(const TraceLog& log, const Names& names);

  // For a trace that is not in memory: replay it into a BlockReader, then into a Reader. Until then, the
  // names are the other ones.
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
  // A text that was made with the other names, in these. `whole`: it speaks of blocks, not of what lies at
  // their beginnings.
  std::string renamed(const std::string& text, bool whole = false) const;
  // What a name in these texts stands for, in the order of names.
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
    std::string name;  // "node#2"; empty: its memory was given out more than once
    std::string type;
    AgentId agent;
    Place place;  // where it was allocated, or if that is not known, freed
    bool is_freed = false;
    bool is_typed() const { return !type.empty(); }
  };
  struct Object {
    std::string kind;        // "mutex"
    std::string expression;  // "queue->lock"; empty: not known
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
  const std::pair<const uint64_t, KnownBlock>* block_at(uint64_t address) const;  // nullptr: none, or several
  std::optional<std::string> in_block(uint64_t address) const;
  std::string by_address(const std::string& name, bool whole) const;

  const Names& names_;
  std::map<uint64_t, KnownBlock> blocks_;                            // by address
  std::map<std::pair<AgentId, std::string>, uint32_t> block_count_;  // by who allocated, and name
  std::set<std::string> others_;                                     // names of all that has one of its own
  std::map<uint64_t, NamedObject> pointed_;                          // by where they begin
  std::map<std::string, Object> objects_;                            // by what the other names call them
  std::vector<std::string> order_;                                   // of their first use
};

// What the source line of an operation calls its object: "queue->lock"; empty if that is not clear.
std::string lock_expression(const std::string& source, OpKind op);

}  // namespace slalom
