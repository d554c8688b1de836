// portfolio: several strategies share one search; those that show more that is new get more of it.
//
// An epoch is 64 executions. Each of A arms gets at least the 2A-th part of it; the rest goes by reward per
// executed step: new happens-before classes and, worth far more, new verdict titles. What an epoch earned
// counts half as much in each later one. Steps, never seconds: the division is the same on any host and
// number of workers. An arm that has no more executions leaves; one that has explored the whole space, not
// just what is within a bound, ends the search as exhausted.
//
// A member that goes round failures (explore/strategies/detour.h) takes part only while failures end half of
// the other members' executions: an epoch then has half as many executions more, which are its own. Where
// races show new places to switch, all members begin anew: what they counted and where they have been means
// nothing there.
//
// Guarantee: a sampling arm makes exactly the executions it would make alone, so after 2AN executions
// (rounded up to an epoch) all that any one of them shows in N was shown.
//
// Cost: the most recording and the least fairness that any arm asks for; memory for all classes and titles.
#pragma once

#include <set>

#include "base/flat_map.h"
#include "explore/strategies/detour.h"
#include "explore/strategy.h"

namespace slalom {

struct PortfolioOptions {
  uint64_t epoch = 64;         // executions between two divisions; at least two for each arm are taken
  uint64_t title_reward = 64;  // of a verdict title not seen before, in classes
};

// random, pct of depths 1 to 3, pos and surw.
std::vector<std::unique_ptr<Strategy>> sampling_arms(uint64_t seed, bool insists = false);

class Portfolio : public Strategy {
 public:
  // At least one arm. Exhaustive strategies may be among them.
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
    Detour* detour = nullptr;  // the same, if it is one
    bool finished = false;
    uint64_t quota = 0;  // executions left to it in this epoch
    uint64_t outstanding = 0;
    uint64_t executions = 0;
    uint64_t reward = 0, steps = 0;          // of past epochs
    uint64_t new_reward = 0, new_steps = 0;  // of this one
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
