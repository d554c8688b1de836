// portfolio: several strategies share one search. Those that show more new behaviour get more executions.
//
// An epoch is 64 executions. Each of A arms gets at least the 2A-th part of an epoch. The rest is divided by
// reward per executed step. Rewards are new happens-before classes and, worth far more, new verdict titles.
// The reward of an epoch counts half as much in each later epoch. The division uses steps, never seconds, so
// it is the same on any host and for any number of workers. An arm that has no more executions leaves. An arm
// that has explored the whole space, not only the space within a bound, ends the search as exhausted.
//
// A member that goes round failures (explore/strategies/detour.h) takes part only while failures end half of
// the other members' executions. An epoch then has half as many executions more, all of that member. If races
// show new places to switch, all members start again, because their counts and prefixes mean nothing with the
// new choice points.
//
// Guarantee: a sampling arm makes exactly the executions that it would make alone. After 2AN executions
// (rounded up to an epoch), the search has thus shown everything that any one arm shows in N.
//
// Cost: the most detailed recording and the least fairness that any arm asks for, and memory for all classes
// and titles.
#pragma once

#include <set>

#include "base/flat_map.h"
#include "explore/strategies/detour.h"
#include "explore/strategy.h"

namespace slalom {

struct PortfolioOptions {
  uint64_t epoch = 64;         // executions between two divisions, or two for each arm if that is more
  uint64_t title_reward = 64;  // for a verdict title not seen before, in classes
};

// Returns random, pct of depths 1 to 3, pos and surw.
std::vector<std::unique_ptr<Strategy>> sampling_arms(uint64_t seed, bool insists = false);

class Portfolio : public Strategy {
 public:
  // Takes at least one arm. Exhaustive strategies may be among them.
  explicit Portfolio(std::vector<std::unique_ptr<Strategy>> arms, PortfolioOptions options = {});
  std::string name() const override { return "portfolio"; }
  Recording recording() const override;
  bool fair() const override;
  bool restarts() const override;
  void restart() override;
  void next_round(size_t tasks) override {
    for (Arm& arm : arms_) arm.strategy->next_round(tasks);
  }
  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

  uint64_t executions_of(size_t arm) const { return arms_[arm].executions; }

 private:
  struct Arm {
    std::unique_ptr<Strategy> strategy;
    Detour* detour = nullptr;  // the strategy if it is a Detour, else nullptr
    bool finished = false;
    uint64_t quota = 0;  // executions left to the arm in this epoch
    uint64_t outstanding = 0;
    uint64_t executions = 0;
    uint64_t reward = 0, steps = 0;          // of past epochs
    uint64_t new_reward = 0, new_steps = 0;  // of this epoch
  };
  bool start_epoch();

  PortfolioOptions options_;
  std::vector<Arm> arms_;
  size_t turn_ = 0;
  uint64_t next_ = 0;
  bool exhausted_ = false;  // by the arm that finished last
  size_t exhausted_by_ = 0;
  FlatMap<uint8_t> classes_;
  std::set<std::string> titles_;
};

}  // namespace slalom
