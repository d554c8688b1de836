// ChoicePoint: where the machine could go two ways; Decision: the way it goes.
//
// A machine stops at a choice point before an agent's next operation. Options are computed on demand, since
// most choice points are passed without looking at them. A Data choice asks for a value of the running agent
// (which waiter to wake, what a random source returns) instead of an agent.
#pragma once

#include <cstdint>
#include <span>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

enum class ChoiceKind : uint8_t {
  Start,    // nobody runs yet
  Running,  // the current agent could go on: choosing another one is a preemption
  Yielded,  // the current agent offered to give way
  Blocked,  // the current agent cannot go on now
  Ended,    // the current agent is over
  Data,     // a value in [0, arity)
};

// What an enabled agent would do next.
struct PendingOp {
  OpKind kind = OpKind::None;
  ObjectId object;
  Place pc;
};

struct Option {
  AgentId agent;
  PendingOp op;
};

class OptionSource {
 public:
  virtual std::span<const Option> options() const = 0;  // all enabled agents, in the order of their ids

 protected:
  ~OptionSource() = default;
};

struct ChoicePoint {
  Step step;
  ChoiceKind kind = ChoiceKind::Start;
  AgentId current;               // who ran last
  uint64_t current_ops = 0;      // how many operations it has retired
  uint32_t arity = 0;            // of a Data choice
  uint64_t digest = 0;           // of what an exact replay must find here
  uint32_t unasked = 0;          // choice points that were passed since the last decision, by its lease
  PendingOp passed;              // what the agent did at the last of them: of a lease until a conflict only
  bool heeds_conflicts = false;  // the machine does what Decision::until_conflict says
  const OptionSource* source = nullptr;

  std::span<const Option> options() const { return source->options(); }
  bool current_enabled() const { return kind == ChoiceKind::Running || kind == ChoiceKind::Yielded; }
};

struct Decision {
  AgentId next;        // of a Data choice: the current agent
  uint32_t value = 0;  // of a Data choice
  uint32_t lease =
      0;  // pass that many choice points unasked, unless the agent blocks, ends, or others wake or end
  bool until_conflict = false;  // nor one at which its operation conflicts with what another would do next

  bool operator==(const Decision&) const = default;
};

}  // namespace slalom
