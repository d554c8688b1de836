// Outcome: how an execution ended. A closed sum: a new kind makes every std::visit fail to compile.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

struct Exited {};

// Nothing can run, and not all agents have ended.
struct Deadlocked {
  struct Waiting {
    AgentId agent;
    OpKind op = OpKind::None;
    ObjectId object;
    Place pc;
    std::vector<AgentId> held_by;  // who could let it go on; empty where nobody in particular
  };
  std::vector<Waiting> waiting;
  std::string doubt;  // a sentence: why it may be none; not in traces
};

// The target broke by itself: a failed assertion, a bad access.
struct Faulted {
  enum class Kind : uint8_t { Assertion, Crash };
  Kind kind = Kind::Assertion;
  AgentId agent;
  Place pc;
  std::string what;
};

// A limit cut the execution off: perhaps a livelock, perhaps a long program.
struct LimitReached {
  uint64_t steps = 0;
  std::vector<AgentId> enabled;  // at the end
  enum class Limit : uint8_t {
    Steps,  // of the whole execution
    Notes,  // bytes of text that the target may leave in an execution's events
    Check,  // of the check that a kernel test makes after its flows; in traces as Steps
  } limit = Limit::Steps;
  static constexpr size_t kLimits = 3;
};

// The search cut it off.
struct Abandoned {
  enum class Because : uint8_t {
    Unfinished,   // the search ended, or the execution was never made
    Redundant,    // all that can follow is explored by other executions
    NotPossible,  // the agent that the search wanted next cannot run there
  };
  static constexpr size_t kReasons = 3;
  std::string why;
  Because because = Because::Unfinished;  // not in traces
};

// slalom's own trouble, never a bug of the target.
struct ToolError {
  std::string message;
};

using Outcome = std::variant<Exited, Deadlocked, Faulted, LimitReached, Abandoned, ToolError>;

template <typename... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace slalom
