// ContextTable: maps the circumstances of an access to one number that fits into its record. The
// circumstances are the locks that the agent held and its last synchronisation operation.
//
// Only explanations use contexts, never the decision whether there is a race. Equal contexts have equal
// numbers, so the table grows with the program's code and objects, not with the length of the execution.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "base/strong.h"
#include "trace/op.h"

namespace slalom {

// Sets of held locks, each a chain from the lock taken last to the one taken first. 0 is the empty set.
class LockSets {
 public:
  uint32_t with(uint32_t set, ObjectId lock);
  uint32_t without(uint32_t set, ObjectId lock);   // returns `set` if the lock is not in it
  std::vector<ObjectId> list(uint32_t set) const;  // in the order in which they were taken
  void clear() {
    nodes_.clear();
    index_.clear();
  }

 private:
  struct Node {
    uint32_t rest = 0;
    ObjectId lock;
  };
  std::vector<Node> nodes_;  // set number i is nodes_[i - 1]
  FlatMap<uint32_t> index_;  // by rest and lock
};

struct Context {
  uint32_t locks = 0;
  OpKind sync = OpKind::None;  // None: no synchronisation yet
  Place pc;
  ObjectId object;
};

class ContextTable {
 public:
  uint32_t intern(const Context& context);
  const Context& operator[](uint32_t number) const { return contexts_[number - 1]; }
  void clear() {
    contexts_.clear();
    index_.clear();
  }

 private:
  std::vector<Context> contexts_;  // number i is contexts_[i - 1]
  FlatMap<uint32_t> index_;
};

}  // namespace slalom
