#include "toy/toy_state.h"

#include "base/hash.h"

namespace slalom {

// Visits and identifies agents by AgentId, so that executions that differ only in the order of creation have
// the same hash. Leaves out registers that no later instruction reads.
uint64_t ToyState::hash(const ToyProgram& program) const {
  uint64_t result = 0;
  const auto add = [&](uint64_t value) { result = combine(result, value); };
  for (int64_t cell : cells) add(static_cast<uint64_t>(cell));
  for (const ToySync& object : sync) {
    add(object.count);
    add(object.owner == kNoToyIndex ? 0 : agents[object.owner].id.raw);
  }
  uint64_t holds = 0;  // a sum, because their order has no meaning
  for (const ToyReadHold& hold : read_holds) holds += combine(hold.sync, agents[hold.agent].id.raw);
  add(holds);
  for (const ToyHeapObject& object : heap) {
    add(object.id.raw + object.live);
    for (uint32_t i = 0; i < object.size; ++i) add(static_cast<uint64_t>(heap_cells[object.first + i]));
  }
  for (uint32_t index : order) {
    const ToyAgent& agent = agents[index];
    add(agent.id.raw);
    add(static_cast<uint64_t>(agent.status) | uint64_t{agent.cpu} << 8 | uint64_t{agent.pending} << 16);
    if (agent.status == ToyAgent::Status::Ended) continue;
    add(uint64_t{agent.pc} << 32 | agent.waits_on);
    add(uint64_t{agent.spawned} << 32 | agent.allocated);
    if (agent.status == ToyAgent::Status::Idle) continue;
    // At a barrier, the agent has not yet run up to its next visible instruction.
    const uint32_t pc = agent.status == ToyAgent::Status::AtBarrier ? agent.pc - 1 : agent.pc;
    for (uint32_t i = 0; i < program.code[pc].live; ++i)
      add(static_cast<uint64_t>(registers[agent.frame + i]));
  }
  add(arity);
  return result;
}

}  // namespace slalom
