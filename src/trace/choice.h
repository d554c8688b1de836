// ChoicePoint: a place where the machine could go more than one way. Decision: the way it goes.
//
// A machine stops at a choice point before an agent's next operation. It computes the options on demand,
// because strategies pass most choice points without reading them. A Data choice asks for a value (which
// waiter to wake, what a random source returns) instead of an agent, on behalf of the running agent.
#pragma once

#include <cstdint>
#include <span>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/forecast.h"
#include "trace/op.h"

namespace slalom {

enum class ChoiceKind : uint8_t {
  Start,    // no agent runs yet
  Running,  // the current agent could go on; choosing another one is a preemption
  Yielded,  // the current agent offered to yield
  Blocked,  // the current agent is blocked
  Ended,    // the current agent has ended
  Data,     // the choice is a value in [0, arity)
};

// The next operation of an enabled agent.
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
  virtual std::span<const Option> options() const = 0;  // all enabled agents, ordered by id

 protected:
  ~OptionSource() = default;
};

struct ChoicePoint {
  Position position;
  ChoiceKind kind = ChoiceKind::Start;
  AgentId current;           // the agent that ran last
  uint64_t current_ops = 0;  // operations that it has retired
  uint32_t arity = 0;        // of a Data choice: the number of values
  uint64_t digest = 0;       // an exact replay must find the same digest here
  uint32_t passed = 0;       // choice points since the last decision that the machine will not show
  // The agent's operation at the last passed choice point; set only if the agent was kept until a conflict.
  PendingOp last_passed;
  // The parts of a forecast that the machine would use here, besides `keep`.
  struct Uses {
    bool until_conflict = false;
    bool later = false;
  } uses;
  const OptionSource* source = nullptr;

  std::span<const Option> options() const { return source->options(); }
  bool current_enabled() const { return kind == ChoiceKind::Running || kind == ChoiceKind::Yielded; }
};

struct Decision {
  AgentId next;        // the agent to run; for a Data choice, the current agent
  uint32_t value = 0;  // the answer to a Data choice
  Forecast forecast;
};

}  // namespace slalom
