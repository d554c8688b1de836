// Outcome: how an execution ended. A closed sum type: a new alternative makes every std::visit fail to
// compile.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

struct Exited {};

// No agent can run, and some agents have not ended.
struct Deadlocked {
  struct Waiting {
    AgentId agent;
    OpKind op = OpKind::None;
    ObjectId object;
    Place pc;
    std::vector<AgentId> held_by;  // agents that could let it go on; empty if no single agent is responsible
  };
  std::vector<Waiting> waiting;
  std::string doubt;  // a sentence: why this may be no deadlock; empty if certain; not in traces
};

// The target failed by itself: a failed assertion or a bad access.
struct Faulted {
  enum class Kind : uint8_t { Assertion, Crash };
  Kind kind = Kind::Assertion;
  AgentId agent;
  Place pc;
  std::string what;
};

// A limit stopped the execution: perhaps a livelock, perhaps a long program.
struct LimitReached {
  uint64_t steps = 0;
  std::vector<AgentId> enabled;  // agents that could run at the end
  enum class Limit : uint8_t {
    Steps,  // of the whole execution
    Notes,  // bytes of text that the target may emit as events of one execution
    Check,  // steps of the check that a kernel test makes after its flows; stored as Steps in traces
  } limit = Limit::Steps;
  static constexpr size_t kLimits = 3;
};

// The search stopped the execution.
struct Abandoned {
  enum class Reason : uint8_t {
    Unfinished,   // the search ended, or the execution was never made
    Redundant,    // other executions explore all continuations
    NotPossible,  // the agent that the search wants next cannot run
  };
  static constexpr size_t kReasons = 3;
  std::string why;
  Reason reason = Reason::Unfinished;  // not in traces
};

// A failure of slalom itself, never a bug of the target.
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
