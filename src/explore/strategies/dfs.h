// dfs: every schedule, once; in the order of a bound (CHESS, section 4.4.1: preemptions; Emmi, Qadeer,
// Rakamaric, POPL 2011: delays), iterated 0, 1, 2, ... until a limit, a budget or the space ends.
//
// Guarantee: when bound c is completed, every schedule with at most c preemptions (or delays) was executed
// exactly once, of the fair ones where fairness applies (explore/fairness.h): the statement says so if it
// left out any. Nothing is executed again for the next bound: what was too expensive waits for its turn. With
// caching (CHESS 4.4.2) a state reached before, as told by its happens-before hash with plain accesses, is
// not explored again; the key holds the current agent and the cost too, since the bound makes them matter.
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
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // of the bound
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
  // Paths share their beginnings: a link is the last decision of a path.
  struct Link {
    uint32_t parent = 0;
    uint32_t users = 0;  // links and pending branches that continue it
    Pick pick;
  };
  struct Pending {
    uint32_t link = 0;  // 0: the root, no decisions at all
    uint64_t cost = 0;
    double mass = 1;  // its share of the tree, if all branches were equal
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
  std::vector<std::vector<Pending>> pending_;  // by cost; the last one is next
  std::vector<Pending> next_;                  // chosen to be given out, of one cost; the last one is next
  std::vector<Pending> outstanding_;           // given out, in order
  size_t ended_ = 0;                           // of these
  bool beyond_limit_ = false;                  // something was too expensive
  bool withheld_ = false;                      // something was unfair
  uint64_t tasks_ = 0;
  uint64_t executions_ = 0;
  double explored_ = 0;       // mass
  size_t window_ = 64;        // how many branches are chosen at a time
  FlatMap<uint64_t> cache_;   // key -> lowest cost at which it was explored, plus one
  FlatMap<uint64_t> recent_;  // what comes to it when nothing is outstanding: walkers look into the cache
};

}  // namespace slalom
