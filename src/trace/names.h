// Names: what the reader of a report calls the numbers in a trace.
#pragma once

#include <cstdint>
#include <string>

#include "base/strong.h"
#include "trace/agent.h"

namespace slalom {

class Names {
 public:
  virtual ~Names() = default;
  virtual std::string agent(AgentId id) const = 0;    // "worker#2": distinguishes agents
  virtual std::string role(AgentId id) const = 0;     // "worker": the same for all copies; used in titles
  virtual std::string object(ObjectId id) const = 0;  // "x", "a[3]", "m"
  virtual std::string place(Place pc) const = 0;      // "worker:3": stable, used in titles
  virtual std::string source(Place pc) const = 0;     // "x = x + 1": the text there
  // "queue.c:12", where place() does not say so and it is known; only for people to read.
  virtual std::string line(Place) const { return {}; }

  // Of kernels only. An agent's system calls count from 0: "pwrite64(fd, buf(8192), 8192, 0)".
  virtual std::string system_call(AgentId, uint64_t /*ordinal*/, int64_t number) const {
    return "system call " + std::to_string(number);
  }
  virtual std::string system_result(int64_t value) const { return std::to_string(value); }  // "-ENOENT"
  // Does the source there say that the load or store may race (READ_ONCE and the like)?
  enum class Marking : uint8_t { Unknown, Plain, Marked };
  virtual Marking marking(Place, bool /*writes*/) const { return Marking::Unknown; }
};

}  // namespace slalom
