#include "detect/core/context.h"

#include <algorithm>

#include "base/hash.h"

namespace slalom {

uint32_t LockSets::with(uint32_t set, ObjectId lock) {
  uint32_t& known = index_[combine(set, lock.raw)];
  if (known == 0) {
    nodes_.push_back({set, lock});
    known = static_cast<uint32_t>(nodes_.size());
  }
  return known;
}

uint32_t LockSets::without(uint32_t set, ObjectId lock) {
  std::vector<ObjectId> later;
  for (uint32_t at = set; at != 0; at = nodes_[at - 1].rest) {
    if (nodes_[at - 1].lock != lock) {
      later.push_back(nodes_[at - 1].lock);
      continue;
    }
    uint32_t result = nodes_[at - 1].rest;
    for (auto it = later.rbegin(); it != later.rend(); ++it) result = with(result, *it);
    return result;
  }
  return set;
}

std::vector<ObjectId> LockSets::list(uint32_t set) const {
  std::vector<ObjectId> locks;
  for (; set != 0; set = nodes_[set - 1].rest) locks.push_back(nodes_[set - 1].lock);
  std::reverse(locks.begin(), locks.end());
  return locks;
}

uint32_t ContextTable::intern(const Context& context) {
  uint32_t& known =
      index_[combine(context.locks, static_cast<uint64_t>(context.sync), context.pc.raw, context.object.raw)];
  if (known == 0) {
    contexts_.push_back(context);
    known = static_cast<uint32_t>(contexts_.size());
  }
  return known;
}

}  // namespace slalom
