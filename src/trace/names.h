// Names: the names that reports give to the numbers in a trace.
#pragma once

#include <cstdint>
#include <optional>
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
  // Of what is allocated or freed: "node#2", where object() is what lies at its beginning.
  virtual std::string whole(ObjectId id) const { return object(id); }
  virtual std::string place(Place pc) const = 0;   // "worker:3": stable, used in titles
  virtual std::string source(Place pc) const = 0;  // "x = x + 1": the text there
  // "queue.c:12", where place() does not say so and it is known; only for people to read.
  virtual std::string line(Place) const { return {}; }

  // Of programs only, for reports: what debug information tells of memory that object() has no name for.
  // Titles, which are made during the search, do without.
  struct Local {
    std::string name;      // "m", "args.count"
    std::string variable;  // "args"
    std::string function;  // whose it is: "main"
    AgentId agent;         // on whose stack
    bool operator==(const Local&) const = default;
  };
  virtual std::optional<Local> local(ObjectId) const { return std::nullopt; }
  // An object that is no variable, and what lies there in it, where the code has a pointer to it.
  struct Pointed {
    uint64_t begin = 0, size = 0;
    std::string type;  // "queue"
    std::string part;  // "->lock"
    bool operator==(const Pointed&) const = default;
  };
  virtual std::optional<Pointed> pointed(ObjectId) const { return std::nullopt; }
  // A block of so many bytes that was allocated there.
  struct Block {
    std::string name;  // "node", its type, or "counts", the variable that points to it; empty: not known
    std::string type;  // "node", "int[4]"; empty: not known
    bool operator==(const Block&) const = default;
  };
  virtual Block block(Place, uint64_t /*size*/) const { return {}; }
  // What lies at an offset in it: "->next", "[3].value"; empty for all of it. "+8" if no more is known.
  virtual std::string block_part(Place, uint64_t /*size*/, uint64_t offset) const {
    return offset == 0 ? "" : "+" + std::to_string(offset);
  }

  // Of kernels only. An agent's system calls count from 0: "pwrite64(fd, buf(8192), 8192, 0)".
  virtual std::string system_call(AgentId, uint64_t /*ordinal*/, int64_t number) const {
    return "system call " + std::to_string(number);
  }
  virtual std::string system_result(int64_t value) const { return std::to_string(value); }  // "-ENOENT"
  // Whether the source marks the load or store as one that may race (READ_ONCE and the like).
  enum class Marking : uint8_t { Unknown, Plain, Marked };
  virtual Marking marking(Place, bool /*writes*/) const { return Marking::Unknown; }
};

}  // namespace slalom
