// HappensBefore: the partial order of one execution's transitions, and the races in it.
//
// Two transitions are ordered if they belong to one agent, if one starts or wakes the other's agent, or if
// both touch an object and at least one of them writes it. A *race* (e, j) is a pair of conflicting
// transitions of two agents that could have come in the other order: j's agent gets to j without e, and j
// could run in the place of e. If a lock is handed over, the two acquisitions race, not the release and the
// acquisition. Touch::state and can_run() make this distinction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "explore/agent_set.h"
#include "explore/execution.h"

namespace slalom {

// Returns whether the transition ends the whole program. Such a transition comes after everything that
// happened, or prevents it.
inline bool ends_all(std::span<const Touch> touches) {
  return std::any_of(touches.begin(), touches.end(),
                     [](const Touch& touch) { return touch.op == OpKind::Exit && !touch.other; });
}

// Returns whether the touch only accompanies an operation: it says that the agent is interruptible, or that
// an interrupt is pending.
inline bool is_context_op(OpKind op) {
  return op == OpKind::CpuUse || op == OpKind::IrqTake;
}

class HappensBefore {
 public:
  struct Transition {
    AgentId agent;
    uint32_t lane = 0;     // dense number of the agent
    uint32_t ordinal = 0;  // among the agent's transitions, from 1
    uint32_t choice = 0;   // the scheduling choice at which it began
    std::span<const Touch> touches;
    std::vector<uint32_t> values;  // values of its data choices
  };

  // Keeps a reference to the execution until the next build(). Reuses memory.
  void build(const Execution& execution);

  size_t size() const { return count_; }  // transitions that were made
  // Also counts operations that agents were still waiting for.
  size_t with_blocked() const { return count_ + blocked_; }
  const Transition& operator[](size_t i) const { return transitions_[i]; }
  std::span<const Touch> touches(size_t i) const { return transitions_[i].touches; }
  // Returns the operation that the agent was about to do there, as the target announced it. A TryLock can run
  // anywhere, and succeeds or fails.
  OpKind pending(size_t i) const;
  // A time limit of a wait that another agent ended before the limit came. `limit` is the transition that
  // would have happened; it has no place in the order. `by` is the transition that came first.
  struct Overtaken {
    uint32_t by;
    uint32_t limit;
  };
  std::span<const Overtaken> overtaken() const { return overtaken_; }
  bool before(size_t i, size_t j) const {
    return clock(j)[transitions_[i].lane] >= transitions_[i].ordinal && i < j;
  }

  // Returns whether j's agent needed i to reach j, by program order, a start or a wake-up.
  bool leads_to(size_t i, size_t j) const {
    return clock_without_objects(j)[transitions_[i].lane] >= transitions_[i].ordinal;
  }

  enum class Ancestors : uint8_t { Immediate, All, AllAndAwaited };
  // Finds all e for which (e, j) is a race, latest first. Immediate leaves out each e that comes before
  // another found one. AllAndAwaited adds transitions that j would have had to wait for, such as a release
  // before an acquisition.
  void races(size_t j, Ancestors which, std::vector<uint32_t>& found) const;

 private:
  struct Use {
    uint32_t transition;
    uint32_t touch;
    uint32_t last_write;  // number of uses up to and including the last one that writes
  };
  const uint32_t* clock(size_t i) const { return &clocks_[i * lanes_]; }
  const uint32_t* clock_without_objects(size_t i) const { return &own_clocks_[i * lanes_]; }
  void join(uint32_t* into, const uint32_t* from) const;
  bool could_precede(size_t e, size_t j) const;
  uint64_t state_without(size_t e, size_t j, const Touch& touch) const;

  const Execution* execution_ = nullptr;
  void add_blocked();
  void add_overtaken();
  void add_without_place(AgentId agent, const uint32_t* clock, std::span<const Touch> touches);
  bool is_limit(const Touch& touch) const;
  bool is_new(uint32_t e, Ancestors which, const std::vector<uint32_t>& found) const;

  size_t count_ = 0;
  size_t blocked_ = 0;
  std::vector<Touch> blocked_touches_;
  std::vector<Touch> limit_touches_;
  std::vector<Overtaken> overtaken_;
  std::vector<Transition> transitions_;
  size_t lanes_ = 0;
  AgentTable table_;
  std::vector<uint32_t> clocks_;  // by everything that orders
  // By program order, starts and wake-ups only: how the agent got to its operation.
  std::vector<uint32_t> own_clocks_;
  std::vector<uint32_t> agent_clocks_;
  FlatMap<uint32_t> object_slots_;
  std::vector<std::vector<Use>> uses_;  // by slot, in order
  size_t slots_ = 0;
};

}  // namespace slalom
