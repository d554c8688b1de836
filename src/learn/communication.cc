#include "learn/communication.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace slalom {

void CommunicationLearner::reset() {
  agents_.clear();
  interrupted_.clear();
  users_.clear();
  instructions_.clear();
}

unsigned CommunicationLearner::bit_of(AgentId agent) {
  auto at = std::ranges::find(agents_, agent);
  if (at == agents_.end()) {
    if (agents_.size() == kMostAgents) return kMostAgents - 1;
    at = agents_.insert(agents_.end(), agent);
  }
  return static_cast<unsigned>(at - agents_.begin());
}

void CommunicationLearner::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  const uint64_t bit = uint64_t{1} << bit_of(header.agent);
  for (const Access& access : accesses) {
    // Private memory is shared by no two contexts, so its instructions would be dropped at the end.
    if (!is_memory(access.op()) || access.unordered || access.is_private) continue;
    const uint64_t last = (access.physical + std::max<uint64_t>(access.size, 1) - 1) / 8;
    for (uint64_t granule = access.physical / 8; granule <= last; ++granule) {
      Users& users = users_[granule];
      (access.wrote ? users.writers : users.readers) |= bit;
      instructions_[combine(access.pc_bits, granule)] = {access.pc().raw, granule};
    }
  }
}

void CommunicationLearner::on_event(const Event& event) {
  if (event.op == OpKind::IrqEnter && event.agent)
    interrupted_[event.agent.raw] = AgentId::initial(static_cast<uint32_t>(event.object.raw)).raw;
}

// Some ids of interrupts do not show the CPU.
AgentId CommunicationLearner::cpu_of(AgentId agent) const {
  if (const uint64_t* cpu = interrupted_.find(agent.raw)) return AgentId{*cpu};
  while (agent.parent()) agent = agent.parent();
  return agent;
}

// All interrupts of a CPU are one context.
CommunicationLearner::Sharing CommunicationLearner::sharing(const Users& users) const {
  if (users.writers == 0) return Sharing::None;
  AgentId first_cpu;
  bool interrupt = false;
  Sharing most = Sharing::None;
  for (uint64_t left = users.readers | users.writers; left != 0; left &= left - 1) {
    const auto bit = static_cast<unsigned>(std::countr_zero(left));
    const AgentId agent = agents_[bit], cpu = cpu_of(agent);
    if (!first_cpu) {
      first_cpu = cpu;
      interrupt = cpu != agent;
    } else if (cpu != first_cpu) {
      return Sharing::ByCpus;
    } else if (interrupt != (cpu != agent)) {
      most = Sharing::ByInterrupts;
    }
    // The last bit may stand for several agents.
    if (bit == kMostAgents - 1) return Sharing::ByCpus;
  }
  return most;
}

const Knowledge& CommunicationLearner::knowledge() {
  std::vector<Place>& places = knowledge_.places;
  places.clear();
  instructions_.for_each([&](uint64_t, const Instruction& one) {
    const Sharing shared = sharing(*users_.find(one.granule));
    const Place place{one.pc};
    if (shared == Sharing::ByCpus || (shared == Sharing::ByInterrupts && place >= begin_ && place < end_))
      places.push_back(place);
  });
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return knowledge_;
}

}  // namespace slalom
