// Names: the names that reports give to the numbers in a trace.
#pragma once

#include <cstdint>
#include <string>

#include "base/strong.h"
#include "trace/agent.h"

namespace slalom {

class Names {
 public:
  virtual ~Names() = default;
  virtual std::string agent(AgentId id) const = 0;    // "worker#2": differs between agents
  virtual std::string role(AgentId id) const = 0;     // "worker": the same for all copies; used in titles
  virtual std::string object(ObjectId id) const = 0;  // "x", "a[3]", "m"
  virtual std::string place(Place pc) const = 0;   // "worker:3": the same in every execution; used in titles
  virtual std::string source(Place pc) const = 0;  // "x = x + 1": the source text
  // Returns "queue.c:12" if place() does not say it and the line is known, else "". Only for people to read.
  virtual std::string line(Place) const { return {}; }

  // For kernels only. An agent's system calls count from 0. Example: "pwrite64(fd, buf(8192), 8192, 0)".
  virtual std::string system_call(AgentId, uint64_t /*ordinal*/, int64_t number) const {
    return "system call " + std::to_string(number);
  }
  virtual std::string system_result(int64_t value) const { return std::to_string(value); }  // "-ENOENT"
  // Whether the source marks the load or store as one that may race (READ_ONCE and the like).
  enum class Marking : uint8_t { Unknown, Plain, Marked };
  virtual Marking marking(Place, bool /*writes*/) const { return Marking::Unknown; }
};

}  // namespace slalom
