// dfs: executes every schedule once, in the order of a bound (preemptions: CHESS, section 4.4.1; delays:
// Emmi, Qadeer, Rakamaric, POPL 2011). The bound is iterated 0, 1, 2, ... until a limit, a budget or the end
// of the space.
//
// Guarantee: when bound c is completed, every schedule with at most c preemptions (or delays) was executed
// exactly once. Where fairness applies (explore/fairness.h), this holds for the fair schedules, and the
// statement says so if fairness removed any. The next bound repeats no execution: branches that are too
// expensive wait for their bound.
//
// With caching (CHESS 4.4.2), a state that was reached before is not explored again. The key of a state is
// its happens-before hash, plain accesses included, with the current agent and the cost, which matter because
// of the bound.
//
// Cost: memory for the alternatives along a path, and 16 bytes per cached state.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/flat_map.h"
#include "explore/strategy.h"

namespace slalom {

struct DfsOptions {
  enum class Bound : uint8_t { None, Preemptions, Delays } bound = Bound::Preemptions;
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // largest value of the bound
  enum class Caching : uint8_t { Off, HappensBefore } caching = Caching::Off;
  enum class Schedules : uint8_t { Fair, All } schedules = Schedules::Fair;  // see explore/fairness.h
};

class Dfs : public Strategy {
 public:
  explicit Dfs(DfsOptions options = {});
  std::string name() const override;
  Recording recording() const override { return Recording::Choices; }
  bool fair() const override { return options_.schedules == DfsOptions::Schedules::Fair; }
  bool restarts() const override { return true; }
  void restart() override;
  void next_round(size_t tasks) override { window_ = tasks; }
  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 private:
  class Walk;
  // The last decision of a path. Paths share their beginnings.
  struct Link {
    uint32_t parent = 0;
    uint32_t users = 0;  // links and pending branches that continue this link
    Pick pick;
  };
  struct Pending {
    uint32_t link = 0;  // 0: the root, no decisions at all
    uint64_t cost = 0;
    double mass = 1;  // its share of the tree, if all branches of a node were equal
  };
  std::vector<uint32_t> save_links(ByteWriter& out) const;
  void load_links(ByteReader& in);
  void save_pending(ByteWriter& out, const std::vector<uint32_t>& numbers,
                    const std::vector<Pending>& all) const;
  void load_pending(ByteReader& in, uint64_t cost, std::vector<Pending>& all);
  void choose_next();
  uint32_t add_link(uint32_t parent, const Pick& pick);
  void release(uint32_t link);
  void add_pending(Pending pending);
  uint64_t cost_of(const Execution& execution, size_t choice, AgentId agent) const;
  uint64_t key(const ChoiceRecord& record) const;
  static bool cached(const FlatMap<uint64_t>& cache, uint64_t key, uint64_t cost);

  DfsOptions options_;
  std::vector<Link> links_;
  std::vector<uint32_t> free_links_;
  std::vector<std::vector<Pending>> pending_;  // by cost; the last one of each cost is next
  std::vector<Pending> next_;                  // chosen to hand out, all of one cost; the last one is next
  std::vector<Pending> outstanding_;           // handed out, in order
  size_t ended_ = 0;                           // number of `outstanding_` that have ended
  bool beyond_limit_ = false;                  // a branch was too expensive
  bool withheld_ = false;                      // an option was unfair
  uint64_t tasks_ = 0;
  uint64_t executions_ = 0;
  double explored_ = 0;      // sum of masses
  size_t window_ = 64;       // number of branches to choose at a time
  FlatMap<uint64_t> cache_;  // maps a key to the lowest cost at which it was explored, plus one
  // Additions to `cache_`, merged when no task is outstanding, because walkers read the cache.
  FlatMap<uint64_t> recent_;
};

}  // namespace slalom
