// ObjectNames: the names of a log, with words for what a program keeps on its heap and its stacks. Addresses
// there say nothing to a reader, and differ where columns cut them.
//
// A lock is called as the source line that uses it calls it (queue->lock), a block by the type that its
// allocation names (node#2), all else by what it is (mutex#1, heap#3). Numbers count in the order of the log.
// Not for titles: those leave out what tells two objects of one kind apart (detect/core/titles.h).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

class ObjectNames final : public Names {
 public:
  ObjectNames(const TraceLog& log, const Names& names);

  std::string object(ObjectId id) const override;
  // A text that was made with the other names, in these.
  std::string renamed(const std::string& text) const;

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
  struct Block {
    uint64_t size = 0;
    std::string name;  // "node#2"; empty: its memory was given out more than once
  };

  void add_block(const Event& event);
  void note(ObjectId id, OpKind op, Place pc);
  std::optional<std::string> in_block(uint64_t address) const;

  const Names& names_;
  std::map<uint64_t, Block> blocks_;             // by address
  std::map<std::string, uint32_t> block_count_;  // by type
  struct Object {
    std::string kind;        // "mutex"
    std::string expression;  // "queue->lock"; empty: not known
    std::string name;
  };
  std::map<std::string, Object> objects_;  // by what the other names call them
  std::vector<std::string> order_;         // of their first use
};

// What the source line of an operation calls its object: "queue->lock"; empty if that is not clear.
std::string lock_expression(const std::string& source, OpKind op);
// What the source line of an allocation says is allocated: "node"; empty if it does not say.
std::string allocated_type(const std::string& source);

}  // namespace slalom
