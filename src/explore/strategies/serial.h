// serial: runs whole calls, one after the other, in every order. For what calls may do without concurrency,
// not for finding bugs.
//
// A call begins where an agent stands at one of the given places. Under ChoicePolicy::Where::Nowhere with
// these places, a machine stops there. Between two calls, every agent may go on. Within a call, the agent
// that runs goes on. An agent that blocks within a call is left there until it can go on, so calls that wait
// for each other overlap. Interrupts arrive as soon as they can and are a part of the call that they
// interrupt, except those that count as calls.
//
// Guarantee: each order is executed exactly once, in lexicographic order of the agents. The search ends early
// if it reaches a limit; exhausted() then stays false.
//
// Deviations: there is no paper. One task is outstanding at a time.
//
// Cost: executions record their choices.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "explore/strategy.h"

namespace slalom {

struct SerialOptions {
  std::vector<Place> calls;  // the places where calls begin
  // Interrupts whose work counts like a call: it may come before or after another agent's call.
  std::vector<AgentId> working_interrupts;  // sorted
  uint64_t most_orders = std::numeric_limits<uint64_t>::max();
  uint64_t most_steps = std::numeric_limits<uint64_t>::max();  // of all orders together
};

class Serial : public Strategy {
 public:
  explicit Serial(SerialOptions options) : options_(std::move(options)) {}
  std::string name() const override { return "serial"; }
  Recording recording() const override { return Recording::Choices; }
  bool fair() const override { return false; }
  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 private:
  class Rule;
  class Walk;

  SerialOptions options_;
  std::vector<uint64_t> path_;  // of the next order: which agent goes on, for each place where several may
  uint64_t orders_ = 0, steps_ = 0;
  bool outstanding_ = false;
  bool exhausted_ = false;
};

}  // namespace slalom
