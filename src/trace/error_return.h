// ErrorReturn: a failed call by which the target asked something of the world outside it. That world may have
// changed when the execution is repeated. slalom therefore keeps the errors (CHESS 3.1), and a replay returns
// them again without making the calls. It does not keep the results of calls that succeed.
//
// Only programs have error returns. Errors that depend on the schedule alone (EAGAIN, EINTR and the like) are
// not kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/names.h"

namespace slalom {

struct ErrorReturn {
  AgentId agent;
  uint64_t ordinal = 0;  // among the agent's calls of this kind, failed or not
  std::string call;      // "open"
  int32_t error = 0;     // errno; negative: an error of getaddrinfo()
  // As far as slalom knows, no earlier act of another agent caused the error, so it occurs under other
  // schedules too.
  bool outside = false;
  uint64_t subject = 0;  // hash of the object of the call; 0: an object that the target had opened before
  std::string about;     // the object of the call for people to read, such as a path; empty if not kept
  Place pc;
  bool operator==(const ErrorReturn&) const = default;
};

struct ErrorLog {
  std::vector<ErrorReturn> returns;  // ordered by agent, then by ordinal
  uint64_t left_out = 0;             // number of further errors that were not kept
  bool operator==(const ErrorLog&) const = default;
};

// Returns whether the same calls gave the same errors. Ignores `about`: a target may make up new names each
// time.
bool fail_alike(const ErrorLog& one, const ErrorLog& other);
// Returns a sentence for each difference between two executions, calls that fail only in `now` first.
std::vector<std::string> differences(const ErrorLog& then, const ErrorLog& now, const Names& names);

}  // namespace slalom
