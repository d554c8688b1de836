// Schedule: the decisions of an execution, in terms that do not depend on the strategy or the choice points.
// A switch is placed at the leaving agent's own count of retired operations, so it means the same under any
// ChoicePolicy.
//
// A schedule is complete: it holds every change of agent, forced ones included, and every data choice. The
// first switch comes from no agent. `errors` holds the answers of the outside world, as far as a replay needs
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/agent.h"
#include "trace/error_return.h"

namespace slalom {

struct Switch {
  AgentId from;
  uint64_t from_ops = 0;
  AgentId to;
  bool operator==(const Switch&) const = default;
};

struct DataChoice {
  AgentId agent;
  uint64_t ops = 0;      // the agent's retired operations at the choice
  uint32_t ordinal = 0;  // among the agent's data choices at that count
  uint32_t value = 0;
  bool operator==(const DataChoice&) const = default;
};

struct Schedule {
  std::vector<Switch> switches;
  std::vector<DataChoice> data;
  uint64_t digest = 0;             // of the execution: the machine's own digest, or the happens-before hash
  std::optional<ErrorLog> errors;  // empty if the machine does not record errors
  bool operator==(const Schedule&) const = default;
};

}  // namespace slalom
