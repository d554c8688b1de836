// Interleaving: an execution as a reader sees it: operations with their words, and the switches between
// agents with their reasons. It is made once from a TraceLog, and used by the timeline and the other sections
// of a report.
//
// Some operations of a machine consist of several events: an access and the use of its heap object, a signal
// and the agents that it wakes, a wait and the unlock inside it. They are one Operation here.
// report/trace_text.h shows the log as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

struct ObjectUse {
  ObjectId object;
  OpKind kind = OpKind::None;
  bool writes = false;
  uint64_t state = 0;  // of a synchronisation object, before the operation
};

struct Operation {
  Step step;
  AgentId agent;  // no agent: the check after the end
  // Operations that its agent had retired before; empty if it retires nothing itself.
  std::optional<uint64_t> ops;
  OpKind kind = OpKind::None;
  Place pc;
  size_t line = 0;  // the same number for all operations of one source line
  std::vector<ObjectUse> uses;
  std::vector<AgentId> woken;
  std::string text;  // "x = x + 1", "lock m"
  std::string note;  // "read 0", "wakes worker#1"; may be empty
};

// Why an agent stopped running.
enum class Leaving : uint8_t { Preempted, Interrupted, Yielded, Blocked, Ended, Unknown };
// Returns whether the switch is a preemption, or may be one.
constexpr bool unforced(Leaving leaving) {
  return leaving == Leaving::Preempted || leaving == Leaving::Interrupted || leaving == Leaving::Unknown;
}

struct AgentSwitch {
  size_t at = 0;  // index of the first operation of `to`
  AgentId from;
  uint64_t from_ops = 0;
  AgentId to;
  Leaving leaving = Leaving::Unknown;
  std::string blocked_on;  // "lock m": the next operation of `from`; empty if unknown
};

struct Interleaving {
  std::vector<Operation> operations;
  std::vector<AgentSwitch> switches;  // without the start
  std::vector<AgentId> agents;        // agents that did something or wait at the end, ordered by id

  // Returns the agent's operation with that number; nullptr if there is none.
  const Operation* find(AgentId agent, uint64_t ops) const;
};

// Asks `names` only for things in the log.
Interleaving read_interleaving(const TraceLog& log, const Names& names);

// Returns "read", "atomic update" for a memory access; empty for other operations, whose text says it.
std::string_view access_word(OpKind kind);
// Returns "lock m", "join child", without a source line.
std::string describe(OpKind kind, ObjectId object, AgentId other, const Names& names);
// Returns whether the event destroys its object, instead of what its kind says.
bool destroys(const Event& event);
// Returns a value as people write it: small numbers in decimal, with a sign; others in hex.
std::string value_text(uint64_t value, uint32_t size);
// Returns "exited", "deadlock": one line. It is a row of its own if the execution was cut short.
std::string outcome_text(const Outcome& outcome, const Names& names);

}  // namespace slalom
