// Shared code of the tests of sampling strategies: running a strategy on a toy program, and statistics.
//
// Seeds are fixed, so a test always passes or always fails. The critical values say how unlikely its numbers
// would be for a correct strategy.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "explore/explorer.h"
#include "toy/toy_builder.h"
#include "toy/toy_machine.h"

namespace slalom::sampling {

using Program = std::shared_ptr<const ToyProgram>;

inline Program build(const ToyBuilder& builder) {
  return std::make_shared<const ToyProgram>(builder.build().value());
}

// Turns a failed assertion or a deadlock into a verdict.
class FailureObserver : public Observer {
 public:
  struct Nothing : State {};
  void on_accesses(std::span<const Access>, const BatchHeader&) override {}
  void on_event(const Event&) override {}
  void on_end(const Outcome& outcome) override { outcome_ = outcome; }
  void reset() override {}
  std::unique_ptr<State> save() const override { return std::make_unique<Nothing>(); }
  void restore(const State&) override {}
  void harvest(std::vector<Verdict>& verdicts) override {
    Verdict verdict;
    if (const auto* fault = std::get_if<Faulted>(&outcome_)) {
      verdict.title = fault->what;
    } else if (std::holds_alternative<Deadlocked>(outcome_)) {
      verdict.kind = BugKind::Deadlock;
      verdict.title = "deadlock";
    } else {
      return;
    }
    verdicts.push_back(verdict);
  }

 private:
  Outcome outcome_;
};

inline WorkerFactory factory(Program program) {
  return [program]() -> Result<Worker> {
    return Worker{std::make_unique<ToyMachine>(program), std::make_unique<FailureObserver>()};
  };
}

using OnExecution = std::function<void(const Task&, const Execution&)>;

inline ExploreResult explore(Strategy& strategy, Program program, uint64_t schedules,
                             OnExecution on_execution = {}, unsigned workers = 1, uint32_t insist = 0) {
  ExploreOptions options;
  options.schedules = schedules;
  options.workers = workers;
  options.insist = insist;
  options.inputs.max_steps = 2000;
  Explorer explorer(strategy, factory(std::move(program)), options);
  explorer.on_execution = std::move(on_execution);
  return explorer.run().value();
}

inline uint64_t hits(Strategy& strategy, Program program, uint64_t schedules) {
  uint64_t failures = 0;
  explore(strategy, std::move(program), schedules, [&](const Task&, const Execution& execution) {
    failures += std::holds_alternative<Faulted>(execution.outcome);
  });
  return failures;
}

// Returns which agent made each step of an execution without blocking, as agent numbers: "0110".
inline std::string order_of(const Execution& execution) {
  std::string order;
  std::map<AgentId, uint64_t> done;
  std::map<AgentId, size_t> number;
  for (size_t i = 0; i < execution.agent_ops.size(); ++i) number[execution.agent_ops[i].first] = i;
  const auto run = [&](AgentId agent, uint64_t until) {
    for (; done[agent] < until; ++done[agent]) order += static_cast<char>('0' + number[agent]);
  };
  for (const Switch& change : execution.schedule.switches)
    if (change.from) run(change.from, change.from_ops);
  for (const auto& [agent, ops] : execution.agent_ops) run(agent, ops);
  return order;
}

// The value that a chi-square variable exceeds with probability 0.001 (Wilson and Hilferty's approximation).
inline double critical_chi_square(size_t degrees) {
  const double n = static_cast<double>(degrees);
  return n * std::pow(1 - 2 / (9 * n) + 3.09 * std::sqrt(2 / (9 * n)), 3);
}

// `expected` holds probabilities. Any other observation is an error.
inline void expect_distribution(const std::map<std::string, uint64_t>& observed,
                                const std::map<std::string, double>& expected) {
  uint64_t total = 0;
  for (const auto& [key, count] : observed) {
    total += count;
    EXPECT_TRUE(expected.contains(key)) << key << " is impossible, but was seen " << count << " times";
  }
  double sum = 0;
  for (const auto& [key, probability] : expected) {
    const double mean = probability * static_cast<double>(total);
    ASSERT_GE(mean, 5) << "too few samples for " << key;
    const auto at = observed.find(key);
    const double difference = (at == observed.end() ? 0 : static_cast<double>(at->second)) - mean;
    sum += difference * difference / mean;
  }
  EXPECT_LT(sum, critical_chi_square(expected.size() - 1));
}

// Checks one-sidedly (at 0.001) that a success probability of at least `bound` is credible. The Poisson and
// normal tails are close enough for the counts used here.
inline void expect_at_least(uint64_t successes, uint64_t trials, double bound) {
  const double mean = static_cast<double>(trials) * bound;
  EXPECT_GT(static_cast<double>(successes), mean - 3.09 * std::sqrt(mean * (1 - bound)))
      << successes << " of " << trials << ", at least " << bound << " of them expected";
}
inline void expect_close(uint64_t successes, uint64_t trials, double probability) {
  const double mean = static_cast<double>(trials) * probability;
  EXPECT_NEAR(static_cast<double>(successes), mean, 3.29 * std::sqrt(mean * (1 - probability)));
}

}  // namespace slalom::sampling
