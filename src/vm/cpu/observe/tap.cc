#include "vm/cpu/observe/tap.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm {

EdgeCoverage::EdgeCoverage() : slots_(1024) {}

void EdgeCoverage::add(uint64_t from, uint64_t to) {
  const uint64_t mask = slots_.size() - 1;
  for (uint64_t at = (from * 0x9e3779b97f4a7c15u ^ to * 0xbf58476d1ce4e5b9u) >> 20;; ++at) {
    uint32_t& slot = slots_[at & mask];
    if (slot == 0) {
      edges_.push_back({from, to});
      slot = static_cast<uint32_t>(edges_.size());
      if (edges_.size() * 2 > slots_.size()) grow();
      return;
    }
    if (edges_[slot - 1] == Edge{from, to}) return;
  }
}

void EdgeCoverage::grow() {
  std::vector<Edge> edges;
  edges.swap(edges_);
  slots_.assign(slots_.size() * 2, 0);
  edges_.reserve(edges.size() * 2);
  for (const Edge& edge : edges) add(edge.from, edge.to);
}

void EdgeCoverage::reset() {
  ++round_;
  if (edges_.empty()) return;
  std::memset(slots_.data(), 0, slots_.size() * sizeof(slots_[0]));
  edges_.clear();
}

Tap::Tap(TapSink& receiver, const TapFilter& what)
    : sink(receiver), filter(what), batch_(new Access[kBatch]) {
  CHECK(std::has_single_bit(filter.stacks.size) && filter.stacks.size >= kPageSize,
        "stacks of {} bytes: not a power of two, or less than a page", filter.stacks.size);
  next = batch_.get();
  end = next + kBatch;
}

void Tap::flush() {
  const Access* const first = batch_.get();
  const Cpu* const cpu = owner;
  const auto count = static_cast<size_t>(next - first);
  next = batch_.get();
  owner = nullptr;
  if (count > 0) sink.on_batch(*cpu, {first, count}, first_step);
}

// Keeps the records of the running instruction in the batch, since it may still be taken back, unless there
// are no others.
void Tap::make_room(const Cpu& cpu, uint64_t step) {
  Access* kept = next;
  if (owner == &cpu && next == end && step >= first_step)
    while (kept > batch_.get() && kept[-1].retired == step - first_step) --kept;
  if (kept == batch_.get()) kept = next;
  const auto count = static_cast<size_t>(next - kept);
  next = kept;
  flush();
  std::memmove(static_cast<void*>(next), kept, count * sizeof(Access));
  for (; next < batch_.get() + count; ++next) next->retired = 0;
  owner = &cpu;
  first_step = step;
}

void Tap::take_back(const Cpu& cpu, uint64_t step) {
  if (owner != &cpu) return;
  while (next > batch_.get() && next[-1].retired == step - first_step) --next;
}

void Tap::event(const Cpu& cpu, const CpuEvent& what, uint64_t executed) {
  if (!filter.events) return;
  flush();
  sink.on_event(cpu, what, base_step + executed);
}

}  // namespace slalom::vm
