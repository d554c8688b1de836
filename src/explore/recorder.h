// Recorder: the sink that computes footprints and the happens-before hash from accesses and events.
//
// The hash is a sum over operations. Each operation is hashed with its predecessors: its agent's last
// operation, the object's last write and, for a write, the reads since. Two executions get the same hash if
// they differ only in the order of independent operations, plain accesses included. Each touch takes constant
// time.
#pragma once

#include <bit>
#include <vector>

#include "base/flat_map.h"
#include "explore/execution.h"
#include "trace/sink.h"

namespace slalom {

class Recorder : public EventSink {
 public:
  // Everything that a checkpoint must hold.
  struct History {
    struct ObjectHash {
      uint64_t write = 0;
      uint64_t reads = 0;
    };
    FlatMap<ObjectHash, 2> objects;  // by key()
    // Most objects lie at multiples of eight, and neighbours are used together.
    static uint64_t key(ObjectId object) { return std::rotr(object.raw, 3); }
    FlatMap<uint64_t> agents;
    uint64_t sum = 0;
  };

  void begin(Execution& execution, bool keep_touches) {
    execution_ = &execution;
    keep_touches_ = keep_touches;
    history_.objects.clear();
    history_.agents.clear();
    history_.sum = 0;
    last_agent_ = {};
  }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome&) override {}

  // Records a data choice of `agent`.
  void on_value(AgentId agent, uint32_t value);

  const History& history() const { return history_; }
  void restore(const History& history) {
    history_ = history;
    last_agent_ = {};
  }

 private:
  uint64_t& hash_of(AgentId agent);
  // `last` is the agent's own hash. Returns the operation's hash.
  uint64_t touch(uint64_t& last, ObjectId object, OpKind op, Effect effect);

  Execution* execution_ = nullptr;
  bool keep_touches_ = false;
  History history_;
  // Cache for the common case that the same agent goes on. Inserting a new agent moves the map.
  AgentId last_agent_;
  uint64_t* last_hash_ = nullptr;
  OpKind last_op_ = OpKind::None;  // of the last event
};

}  // namespace slalom
