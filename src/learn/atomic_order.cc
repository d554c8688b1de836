#include "learn/atomic_order.h"

#include <algorithm>

#include "trace/program_objects.h"

namespace slalom {

void AtomicOrder::clear() {
  addresses_.clear();
  places_.clear();
  agents_.clear();
  lock_numbers_ = {{{}, 0}};
  lock_sets_ = {{}};
  all_conflict_ = false;
}

AtomicOrder::Agent& AtomicOrder::agent(uint32_t index) {
  if (index >= agents_.size()) agents_.resize(index + 1);
  Agent& agent = agents_[index];
  if (agent.clock.size() <= index) {
    agent.clock.resize(index + 1);
    agent.clock[index] = 1;
  }
  return agent;
}

void AtomicOrder::hold(uint32_t index, uint64_t lock, bool takes) {
  Agent& who = agent(index);
  const auto at = std::lower_bound(who.held.begin(), who.held.end(), lock);
  if (takes)
    who.held.insert(at, lock);
  else if (at != who.held.end() && *at == lock)
    who.held.erase(at);
  const auto [known, added] = lock_numbers_.try_emplace(who.held, static_cast<uint32_t>(lock_sets_.size()));
  if (added) lock_sets_.push_back(who.held);
  who.locks = known->second;
}

void AtomicOrder::add_event(uint32_t index, uint32_t other, const Event& event) {
  const uint64_t object = event.object.raw;
  // Only signals are semaphores with an agent's id.
  const bool of_semaphore = event.op == OpKind::SemPost || event.op == OpKind::SemWait;
  if (object == kSignalObject || (of_semaphore && object >> 56 != 0) ||
      (event.op == OpKind::Spawn && object == kForkObject))
    all_conflict_ = true;
  switch (event.op) {
    case OpKind::Lock:
    case OpKind::WriteLock:
      return hold(index, 2 * object + 1, true);
    case OpKind::TryLock:
      if (event.value != 0) hold(index, 2 * object + 1, true);
      return;
    case OpKind::Unlock:
    case OpKind::WriteUnlock:
      return hold(index, 2 * object + 1, false);
    case OpKind::ReadLock:
      return hold(index, 2 * object, true);
    case OpKind::ReadUnlock:
      return hold(index, 2 * object, false);
    case OpKind::Spawn:
    case OpKind::Join: {
      if (other == kNone) return;
      agent(std::max(index, other));  // grows agents_ before references to its elements are taken
      const bool spawns = event.op == OpKind::Spawn;
      Agent& from = agent(spawns ? index : other);
      Agent& to = agent(spawns ? other : index);
      if (to.clock.size() < from.clock.size()) to.clock.resize(from.clock.size());
      for (size_t i = 0; i < from.clock.size(); ++i) to.clock[i] = std::max(to.clock[i], from.clock[i]);
      if (spawns) ++from.clock[index];
      return;
    }
    default:
      return;
  }
}

// Returns whether both sets hold a lock that at least one of them holds exclusively.
bool AtomicOrder::share_a_lock(uint32_t a, uint32_t b) const {
  return std::any_of(lock_sets_[a].begin(), lock_sets_[a].end(), [&](uint64_t lock) {
    const std::vector<uint64_t>& others = lock_sets_[b];
    return std::binary_search(others.begin(), others.end(), lock ^ 1) ||
           ((lock & 1) != 0 && std::binary_search(others.begin(), others.end(), lock));
  });
}

bool AtomicOrder::ordered(const Use& before, const Use& now) {
  if (before.agent == now.agent || (!before.wrote && !now.wrote)) return true;
  const std::vector<uint32_t>& clock = agents_[now.agent].clock;
  return (before.agent < clock.size() && before.epoch <= clock[before.agent]) ||
         share_a_lock(before.locks, now.locks);
}

void AtomicOrder::add(uint32_t index, const Access& access) {
  const Agent& who = agent(index);
  const Use now{access.pc().raw, index, who.clock[index], who.locks, access.wrote != 0};
  uint8_t& place = places_[now.pc];
  Address& address = addresses_[access.address().raw];
  bool known = false, conflicts = address.count == kMost;
  for (uint32_t i = 0; i < address.count; ++i) {
    known = known || address.uses[i] == now;
    if (ordered(address.uses[i], now)) continue;
    conflicts = true;
    *places_.find(address.uses[i].pc) = 1;
  }
  if (conflicts) place = 1;
  if (!known && address.count < kMost) address.uses[address.count++] = now;
}

std::vector<Place> AtomicOrder::seen() const {
  std::vector<Place> places;
  places_.for_each([&](uint64_t pc, uint8_t) { places.push_back(Place{pc}); });
  std::sort(places.begin(), places.end());
  return places;
}

std::vector<Place> AtomicOrder::conflicting() const {
  std::vector<Place> places;
  places_.for_each([&](uint64_t pc, uint8_t conflicts) {
    if (conflicts != 0 || all_conflict_) places.push_back(Place{pc});
  });
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace slalom
