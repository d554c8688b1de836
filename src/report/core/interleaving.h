// Interleaving: an execution as a reader sees it: operations with their words, and the switches between
// agents with their reasons. Made once from a TraceLog; the timeline and the sections of a report look at it.
//
// What machines tell in several events (an access and the use of its heap object, a signal and whom it wakes,
// a wait and the unlock inside it) is one Operation here. Everything that stays visible as it was logged is
// in report/trace_text.h.
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
  uint64_t state = 0;  // of a synchronisation object, before
};

struct Operation {
  Step step;
  AgentId agent;                // none: the check after the end
  std::optional<uint64_t> ops;  // how many its agent had retired before; none: it retires nothing itself
  OpKind kind = OpKind::None;
  Place pc;
  size_t line = 0;  // the same for all operations of one source line
  std::vector<ObjectUse> uses;
  std::vector<AgentId> woken;
  std::string text;  // "x = x + 1", "lock m"
  std::string note;  // "read 0", "wakes worker#1"; may be empty
};

// Why an agent stopped running.
enum class Leaving : uint8_t { Preempted, Interrupted, Yielded, Blocked, Ended, Unknown };
// A preemption, or perhaps one.
constexpr bool unforced(Leaving leaving) {
  return leaving == Leaving::Preempted || leaving == Leaving::Interrupted || leaving == Leaving::Unknown;
}

struct AgentSwitch {
  size_t at = 0;  // the first operation of `to`
  AgentId from;
  uint64_t from_ops = 0;
  AgentId to;
  Leaving leaving = Leaving::Unknown;
  std::string blocked_on;  // "lock m": what `from` will do when it can; empty where that is not known
};

struct Interleaving {
  std::vector<Operation> operations;
  std::vector<AgentSwitch> switches;  // without the start
  std::vector<AgentId> agents;        // who did something or waits at the end, in the order of ids

  // The operation with that number of that agent.
  const Operation* find(AgentId agent, uint64_t ops) const;
};

// `names` is asked for nothing but what is in the log.
Interleaving read_interleaving(const TraceLog& log, const Names& names);

// "read", "atomic update": of a memory access; empty for all others, whose text says it.
std::string_view access_word(OpKind kind);
// "lock m", "join child", without a source line.
std::string describe(OpKind kind, ObjectId object, AgentId other, const Names& names);
// Is this the end of its object, rather than what its kind says?
bool destroys(const Event& event);
// A value as people write it: small numbers in decimal, with a sign; others in hex.
std::string value_text(uint64_t value, uint32_t size);
// "exited", "deadlock": one line, and a row of its own where the execution was cut short.
std::string outcome_text(const Outcome& outcome, const Names& names);

}  // namespace slalom
