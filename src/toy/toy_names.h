// ToyNames: the names of the agents, objects and places of a toy program. A spawned thread gets its name when
// it is first seen: learn() says which thread an AgentId runs. Without learn() (a trace from a file), it is
// named by its path only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "toy/toy_program.h"
#include "trace/names.h"

namespace slalom {

class ToyNames : public Names {
 public:
  explicit ToyNames(std::shared_ptr<const ToyProgram> program) : program_(std::move(program)) {}

  std::string agent(AgentId id) const override;    // "worker#1", "worker"; spawned: "child@1.1"
  std::string role(AgentId id) const override;     // "worker", "child"
  std::string object(ObjectId id) const override;  // "x", "a[3]", "m", "heap(worker#0,1)[2]", "cpu(worker)"
  std::string place(Place pc) const override;      // "worker:3": thread, and line of its code
  std::string source(Place pc) const override;     // the text of that line

  void learn(AgentId spawned, uint32_t block) { spawned_[spawned] = block; }

 private:
  const ToyInitialAgent* initial(AgentId id) const;

  std::shared_ptr<const ToyProgram> program_;
  std::map<AgentId, uint32_t> spawned_;  // the block that it runs
};

}  // namespace slalom
