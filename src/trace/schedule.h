// Schedule: what was decided, in terms that do not depend on who asked. A switch is placed at the leaving
// agent's own count of retired operations, so it means the same under any ChoicePolicy and without the
// strategy that found it.
//
// Complete: every change of agent is in it, forced ones too, and every data choice. The first switch leaves
// no agent. What the world around the target answered is with it, as far as a replay needs it.
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
  uint64_t ops = 0;      // the agent's retired operations when it asked
  uint32_t ordinal = 0;  // among its questions at that count
  uint32_t value = 0;
  bool operator==(const DataChoice&) const = default;
};

struct Schedule {
  std::vector<Switch> switches;
  std::vector<DataChoice> data;
  uint64_t digest = 0;  // of the execution it describes: the machine's own, or its happens-before hash
  std::optional<ErrorLog> errors;  // none: the machine does not keep them
  bool operator==(const Schedule&) const = default;
};

}  // namespace slalom
