// ErrorReturn: a call by which the target asked something of the world around it, and which failed. That
// world may be another one when the execution is repeated, so its errors are kept (CHESS 3.1), and given
// again without asking. What calls that succeed bring in is not kept.
//
// Only of programs. Errors that the schedule alone decides (EAGAIN, EINTR and the like) are none of these.
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
  int32_t error = 0;     // errno; negative: what getaddrinfo() gives
  // Nothing that other agents did before it can be why, as far as is known: it would come under other
  // schedules, too.
  bool outside = false;
  uint64_t subject = 0;  // a hash of what it was about; 0: of something that the target had opened before
  std::string about;     // the same for people to read: a path; empty: it was not kept
  Place pc;
  bool operator==(const ErrorReturn&) const = default;
};

struct ErrorLog {
  std::vector<ErrorReturn> returns;  // by agent, then by ordinal
  uint64_t left_out = 0;             // there were so many more
  bool operator==(const ErrorLog&) const = default;
};

// The same calls gave the same errors, whatever they were about: names may be made up anew each time.
bool fail_alike(const ErrorLog& one, const ErrorLog& other);
// What a repetition met otherwise, a sentence each: first of all, calls that failed only now.
std::vector<std::string> differences(const ErrorLog& then, const ErrorLog& now, const Names& names);

}  // namespace slalom
