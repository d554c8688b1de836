// Hand-written accesses and events for learners. A place is named by a letter.
#pragma once

#include <string>
#include <vector>

#include "trace/knowledge.h"

namespace slalom::test {

inline constexpr uint64_t kX = 0x1000, kY = 0x2000;

inline std::string letters(const std::vector<Place>& places) {
  std::string text;
  for (const Place place : places) text += static_cast<char>(place.raw);
  return text;
}

// Passes everything on to a learner at once. Agents are numbered from 0.
class LearnerFeed {
 public:
  explicit LearnerFeed(Learner& learner) : learner_(learner) { learner_.reset(); }
  static AgentId id(uint32_t agent) { return AgentId::initial(agent); }

  static Access make(char place, OpKind op, uint64_t address, uint64_t size = 8) {
    Access access{};
    access.pc_bits = static_cast<uint64_t>(place);
    access.op_bits = static_cast<uint64_t>(op);
    access.address_bits = access.physical = address;
    access.size = size;
    access.wrote = op == OpKind::Store || op == OpKind::ReadModifyWrite;
    return access;
  }
  LearnerFeed& access(AgentId agent, const Access& access) {
    learner_.on_accesses({&access, 1}, {agent, 0, Step{step_++}});
    return *this;
  }
  LearnerFeed& load(uint32_t agent, char place, uint64_t address, uint64_t size = 8) {
    return access(id(agent), make(place, OpKind::Load, address, size));
  }
  LearnerFeed& store(uint32_t agent, char place, uint64_t address, uint64_t size = 8) {
    return access(id(agent), make(place, OpKind::Store, address, size));
  }
  LearnerFeed& event(Event event) {
    event.step = Step{step_++};
    learner_.on_event(event);
    return *this;
  }
  LearnerFeed& spawn(uint32_t agent, uint32_t other) {
    return event({.agent = id(agent), .op = OpKind::Spawn, .other = id(other)});
  }
  LearnerFeed& exit(uint32_t agent) { return event({.agent = id(agent), .op = OpKind::Exit}); }
  std::string places() { return letters(learner_.knowledge().places); }
  std::string atomics() { return letters(learner_.knowledge().atomics); }

 private:
  Learner& learner_;
  uint64_t step_ = 0;
};

}  // namespace slalom::test
