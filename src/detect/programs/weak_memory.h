// WeakMemoryDetector: executions that a processor with store buffers could run differently. On such a
// processor, other threads may see a thread's store after the thread's later loads. Then an outcome is
// possible that no order of all operations gives: Dekker's algorithm admits both threads.
//
// The detector watches sequentially consistent executions. For each access, it checks whether the access
// could instead have come before a store that it follows. That suffices: a program has other outcomes only if
// one of its sequentially consistent executions is next to one (Burckhardt and Musuvathi, Effective Program
// Verification for Relaxed Memory Models, CAV 2008). The detector keeps two orders as vector clocks that
// count stores. The first order is all that the execution shows: program order and the order of conflicting
// accesses. The second order is the part that such a processor keeps: all of it except a store before a later
// load of the same thread. The detector reports a store that comes before an access in the first order but
// not in the second.
//
// The model is x86's. Sequentially consistent stores, read-modify-writes (a fence is reported as one) and
// every operation of the threading API empty the buffer. A program whose conflicting accesses are all locked
// or sequentially consistent is never reported. Not for other reorderings by compilers or processors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/clocks.h"
#include "detect/core/detector.h"

namespace slalom {

struct WeakMemoryState {
  static constexpr uint32_t kRecent = 4;   // accesses kept per location
  static constexpr uint32_t kPending = 8;  // stores kept per agent

  struct RecentAccess {
    uint32_t agent = 0;   // index into agents
    uint32_t stores = 0;  // the agent's own stores up to here; for a store, its own number
    uint32_t fenced = 0;  // of these, stores that had left its buffer
    OpKind op = OpKind::None;
    Place pc;
    Step step;
    ObjectId object;
  };

  struct Agent {
    AgentId id;
    // Rows. `all`: what comes before its next operation in the first order. `to_load` and `to_store`: what
    // comes before its next load and its next store in the second order.
    uint32_t all = 0, to_load = 0, to_store = 0;
    uint32_t stores = 0;
    uint32_t fenced = 0;
    std::array<RecentAccess, kPending> pending;  // its last stores, by number
    std::array<uint32_t, kPending> pending_rows;
  };

  // Bytes of a cell that were always accessed together.
  struct Location {
    uint8_t bytes = 0;
    uint32_t next = 0;  // in the cell's list or the free list; 0 ends it
    // Rows of its last store and of all loads, in both orders.
    uint32_t stored = 0, loaded = 0, kept_stored = 0, kept_loaded = 0;
    std::array<RecentAccess, kRecent> stores;  // the last one first; op None: empty
    std::array<RecentAccess, kRecent> loads;   // loads that overtook stores of their agents
  };

  // What all operations on an object of the threading API share.
  struct Meeting {
    uint32_t all = 0, kept = 0;  // rows
  };

  struct Delay {
    RecentAccess store, load;    // of one agent: others may see the store after the load
    RecentAccess before, after;  // the two accesses whose order could then be reversed
    bool certain = false;        // whether these are known to be the store and the load
  };

  FlatMap<uint32_t> agent_index;  // by agent id: index + 1
  std::vector<Agent> agents;
  ClockTable clocks;
  FlatMap<uint32_t> cells;  // by address / 8: the first location, or 0
  std::vector<Location> locations = std::vector<Location>(1);
  uint32_t free_location = 0;
  FlatMap<Meeting> meetings;   // by object
  FlatMap<uint8_t> looked_at;  // pairs of places already examined
  std::vector<Delay> delays;

  void clear();
};

class WeakMemoryDetector final : public StatefulDetector<WeakMemoryState> {
 public:
  using StatefulDetector::StatefulDetector;
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  using Agent = WeakMemoryState::Agent;
  using Location = WeakMemoryState::Location;
  using RecentAccess = WeakMemoryState::RecentAccess;
  using Delay = WeakMemoryState::Delay;

  uint32_t index_of(AgentId agent);
  uint32_t add_location(uint64_t cell, uint8_t bytes);
  void forget(ObjectId object, uint64_t size);

  void access(const Access& access, Step step, uint32_t agent);
  template <typename F>
  void for_each_location(uint64_t address, uint64_t size, F&& f);
  void load(uint32_t location, const RecentAccess& touch);
  void store(uint32_t location, const RecentAccess& touch);
  void note_pending(const RecentAccess& store);
  void fence(uint32_t agent);
  void meet(uint32_t agent, ObjectId object);
  void pass_on(uint32_t agent, uint32_t other);

  // Examines whether the access could have come before one of the location's last stores.
  void judge(const Location& location, const RecentAccess& touch, uint32_t kept_row);
  Delay explain(const RecentAccess& before, const RecentAccess& after) const;
};

}  // namespace slalom
