// The common base of the sampling strategies (random, pct, pos, surw).
//
// A Sampler never finishes. Execution i is drawn from (seed, i) and from learned values. Learned values come
// into effect only at fixed indices (0, 1 and the multiples of kEpoch), where begin() waits until all earlier
// executions have ended. They therefore depend neither on the number of workers nor on the explorer's rounds.
// Index 0 is the pilot: it runs alone, before anything is known. Not for searches that remember which
// executions they made.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "explore/strategy.h"

namespace slalom {

class Sampler : public Strategy {
 public:
  static constexpr uint64_t kEpoch = 64;

  Recording recording() const override { return Recording::Schedule; }
  bool adapts() const override { return true; }
  bool restarts() const override { return true; }
  std::optional<Task> begin() final;
  void end(const Task& task, const Execution& execution) final;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 protected:
  virtual void start_epoch() {}         // puts what was learned into effect
  virtual void prepare(Task&) const {}  // passes the values in effect to the walker
  virtual void learn(const Task&, const Execution&) {}
  uint64_t complete() const { return complete_; }  // executions that ended by themselves

 private:
  uint64_t next_ = 0;
  uint64_t ended_ = 0;
  uint64_t complete_ = 0;
};

// Returns whether the target itself ended the execution. An execution that was cut off says nothing about
// what would have followed.
bool ended_by_itself(const Outcome& outcome);
std::string with_commas(uint64_t number);  // "12,345"
std::string percent(double probability);   // rounded up: "0.37 %"

// The answer to a Data choice.
inline Decision random_value(const ChoicePoint& point, Rng& rng) {
  return {point.current, static_cast<uint32_t>(rng.below(point.arity)), {}};
}

// A value for each agent seen so far, ordered by id. Options have the same order, so a caller that starts
// each search at the previous result finds them all in one sweep.
template <typename Value>
class AgentMap {
 public:
  struct Entry {
    AgentId agent;
    Value value{};
  };

  AgentMap() { entries_.reserve(16); }
  // Returns the agent's position, which must be `from` or later. Inserts a new agent with a default value,
  // which moves the entries behind it.
  size_t find(AgentId agent, size_t from = 0) {
    while (from < entries_.size() && entries_[from].agent < agent) ++from;
    if (from == entries_.size() || entries_[from].agent != agent)
      entries_.insert(entries_.begin() + static_cast<ptrdiff_t>(from), Entry{agent});
    return from;
  }
  Value& operator[](size_t position) { return entries_[position].value; }
  Value& at(AgentId agent) { return entries_[find(agent)].value; }
  Value* existing(AgentId agent) {
    for (Entry& entry : entries_)
      if (entry.agent == agent) return &entry.value;
    return nullptr;
  }
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Returns false if there are too many agents.
inline bool put_priorities(const AgentMap<int64_t>& priorities, ChoiceRule& rule) {
  if (priorities.entries().size() > ChoiceRule::kMostAgents) return false;
  rule.known = 0;
  for (const auto& [agent, priority] : priorities.entries())
    rule.priorities[rule.known++] = {agent, priority};
  return true;
}

}  // namespace slalom
