// ToyNames: what the agents, objects and places of a toy program are called. Threads that are spawned get
// their name when they are first seen: learn() says which thread an AgentId runs. Without it (a trace read
// from a file) they are called by their path only.
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

  std::string agent(AgentId id) const override;    // "worker#1", "worker", spawned: "child@1.1"
  std::string role(AgentId id) const override;     // "worker", "child"
  std::string object(ObjectId id) const override;  // "x", "a[3]", "m", "heap(worker#0,1)[2]", "cpu(worker)"
  std::string place(Place pc) const override;      // "worker:3": thread and line of its code
  std::string source(Place pc) const override;     // that line

  void learn(AgentId spawned, uint32_t block) { spawned_[spawned] = block; }

 private:
  const ToyInitialAgent* initial(AgentId id) const;

  std::shared_ptr<const ToyProgram> program_;
  std::map<AgentId, uint32_t> spawned_;  // what block it runs
};

}  // namespace slalom
