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
  virtual std::string role(AgentId id) const = 0;     // "worker": equal for all copies; used in titles
  virtual std::string object(ObjectId id) const = 0;  // "x", "a[3]", "m"
  // The name of a whole block that is allocated or freed: "node#2". object() names what is at its beginning.
  virtual std::string whole(ObjectId id) const { return object(id); }
  virtual std::string place(Place pc) const = 0;   // "worker:3": stable, used in titles
  virtual std::string source(Place pc) const = 0;  // "x = x + 1": the source text there
  // "queue.c:12", if it is known and place() does not contain it. For reports only.
  virtual std::string line(Place) const { return {}; }

  // Only for programs, and only for reports: what debug information says of memory that object() has no name
  // for. Titles do not use it, because they are made during the search.
  struct Local {
    std::string name;      // "m", "args.count"
    std::string variable;  // "args"
    std::string function;  // the function that declares it: "main"
    AgentId agent;         // the agent whose stack holds it
    bool operator==(const Local&) const = default;
  };
  virtual std::optional<Local> local(ObjectId) const { return std::nullopt; }
  // An object that is no variable but that a pointer in the code points to, and its part at the address.
  struct Pointed {
    uint64_t begin = 0, size = 0;
    std::string type;  // "queue"
    std::string part;  // "->lock"
    bool operator==(const Pointed&) const = default;
  };
  virtual std::optional<Pointed> pointed(ObjectId) const { return std::nullopt; }
  // A block of `size` bytes that was allocated at a place.
  struct Block {
    std::string name;  // "node" (its type) or "counts" (the variable that points to it); empty if unknown
    std::string type;  // "node", "int[4]"; empty if unknown
    bool operator==(const Block&) const = default;
  };
  virtual Block block(Place, uint64_t /*size*/) const { return {}; }
  // The part at an offset in such a block: "->next", "[3].value"; empty for the whole block. "+8" if the type
  // is unknown.
  virtual std::string block_part(Place, uint64_t /*size*/, uint64_t offset) const {
    return offset == 0 ? "" : "+" + std::to_string(offset);
  }

  // Only for kernels: "pwrite64(fd, buf(8192), 8192, 0)". `ordinal` counts the agent's system calls from 0.
  virtual std::string system_call(AgentId, uint64_t /*ordinal*/, int64_t number) const {
    return "system call " + std::to_string(number);
  }
  virtual std::string system_result(int64_t value) const { return std::to_string(value); }  // "-ENOENT"
  // Returns whether the source marks the load or store as one that may race (READ_ONCE and the like).
  enum class Marking : uint8_t { Unknown, Plain, Marked };
  virtual Marking marking(Place, bool /*writes*/) const { return Marking::Unknown; }
};

}  // namespace slalom
