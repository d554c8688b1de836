// ConflictLearner: finds the plain accesses at which a search should switch: two agents access the same
// memory, at least one of them writes, and no other write comes between. Locks do not matter. What happens
// before an agent starts, or after it has ended, does not conflict with that agent's accesses. On request it
// also finds the atomic operations that other synchronisation does not order (learn/atomic_order.h).
//
// Accesses meet if their first bytes lie in the same granule of eight bytes. Keeps only the last
// write of a granule and the last read since: this is cheap, and a search adds up many executions. Made for
// programs. For kernels, see learn/communication.h.
#pragma once

#include <vector>

#include "base/flat_map.h"
#include "learn/atomic_order.h"
#include "trace/knowledge.h"

namespace slalom {

class ConflictLearner final : public Learner {
 public:
  explicit ConflictLearner(bool collects_atomics) : collects_atomics_(collects_atomics) {}

  void reset() override;
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome&) override {}
  const Knowledge& knowledge() override;

 private:
  static constexpr uint64_t kGranule = 8;
  // The agents that accessed a granule of memory, and where: the last write, and the last read since.
  struct Touched {
    uint32_t writer = 0, reader = 0;  // index + 1; 0 if none
    uint64_t write_pc = 0, read_pc = 0;
    uint64_t write_step = 0, read_step = 0;
  };
  struct Life {
    uint64_t born = 0;
    bool ended = false;
  };
  uint32_t index_of(AgentId agent);
  void add(std::span<const Access> accesses, const BatchHeader& header);
  void add(const Access& access, uint64_t step, uint32_t agent);
  void add_conflict(uint32_t agent, uint64_t pc, uint32_t other, uint64_t other_pc, uint64_t other_step);
  void add_place(Place place);

  const bool collects_atomics_;
  FlatMap<uint32_t> indexes_;  // by agent: index + 1
  static constexpr AgentId kNoAgent{UINT64_MAX};
  AgentId last_agent_ = kNoAgent;  // the agent that was asked for last, and its index
  uint32_t last_index_ = 0;
  FlatMap<Touched, 3> touched_;
  std::vector<Life> lives_;
  AtomicOrder order_;
  std::vector<Place> plain_;  // sorted
  Knowledge knowledge_;
};

}  // namespace slalom
