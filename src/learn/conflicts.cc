#include "learn/conflicts.h"

#include <algorithm>

namespace slalom {
namespace {

constexpr size_t kSoon = 12;  // accesses read ahead

bool is_plain(const Access& access) {
  return access.op() == OpKind::Load || access.op() == OpKind::Store;
}

}  // namespace

void ConflictLearner::reset() {
  indexes_.clear();
  last_agent_ = kNoAgent;
  touched_.clear();
  lives_.clear();
  plain_.clear();
  if (collects_atomics_) order_.clear();
}

uint32_t ConflictLearner::index_of(AgentId agent) {
  if (agent == last_agent_) return last_index_;
  uint32_t& known = indexes_[agent.raw];
  if (known == 0) {
    lives_.emplace_back();
    known = static_cast<uint32_t>(lives_.size());
  }
  last_agent_ = agent;
  return last_index_ = known - 1;
}

void ConflictLearner::add_place(Place place) {
  const auto at = std::lower_bound(plain_.begin(), plain_.end(), place);
  if (at == plain_.end() || *at != place) plain_.insert(at, place);
}

inline void ConflictLearner::add_conflict(uint32_t agent, uint64_t pc, uint32_t other, uint64_t other_pc,
                                          uint64_t other_step) {
  if (other == 0 || other == agent + 1 || other_step < lives_[agent].born || lives_[other - 1].ended) return;
  add_place(Place{pc});
  add_place(Place{other_pc});
}

inline void ConflictLearner::add(const Access& access, uint64_t step, uint32_t agent) {
  Touched& touched = touched_[access.address().raw / kGranule];
  const uint64_t pc = access.pc().raw;
  add_conflict(agent, pc, touched.writer, touched.write_pc, touched.write_step);
  if (access.wrote) {
    add_conflict(agent, pc, touched.reader, touched.read_pc, touched.read_step);
    touched.writer = agent + 1;
    touched.write_pc = pc;
    touched.write_step = step;
    touched.reader = 0;
  } else {
    touched.reader = agent + 1;
    touched.read_pc = pc;
    touched.read_step = step;
  }
}

// A program's stops cut its accesses into short batches, and most of those that the runner passes on during a
// search of atomic operations hold nothing for this learner.
void ConflictLearner::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  if (collects_atomics_ || std::any_of(accesses.begin(), accesses.end(), is_plain)) add(accesses, header);
}

[[gnu::noinline]] void ConflictLearner::add(std::span<const Access> accesses, const BatchHeader& header) {
  const uint32_t agent = index_of(header.agent);
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (i + kSoon < accesses.size()) touched_.prefetch(accesses[i + kSoon].address().raw / kGranule);
    const Access& access = accesses[i];
    if (is_plain(access))
      add(access, header.first_step.raw + access.retired, agent);
    else if (collects_atomics_ && is_atomic(access.op()))
      order_.add(agent, access);
  }
}

void ConflictLearner::on_event(const Event& event) {
  if (event.op == OpKind::Spawn && event.other) lives_[index_of(event.other)].born = event.step.raw;
  if (event.op == OpKind::Exit) lives_[index_of(event.agent)].ended = true;
  if (!collects_atomics_) return;
  const uint32_t agent = index_of(event.agent);
  order_.add_event(agent, event.other ? index_of(event.other) : AtomicOrder::kNone, event);
}

const Knowledge& ConflictLearner::knowledge() {
  knowledge_.places = plain_;
  if (collects_atomics_) {
    merge_places(knowledge_.places, order_.conflicting());
    knowledge_.atomics = order_.seen();
  }
  return knowledge_;
}

}  // namespace slalom
