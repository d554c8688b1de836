#include "toy/toy_program.h"

#include <algorithm>

#include "base/check.h"

namespace slalom {
namespace {

constexpr uint64_t kSync = 0x2000'0000;
constexpr uint64_t kInterrupts = 0x3000'0000;
constexpr uint64_t kTimers = 0x4000'0000;
constexpr uint64_t kStaticEnd = 0x5000'0000;
constexpr uint64_t kAgents = uint64_t{1} << 43;
constexpr uint64_t kCpus = uint64_t{1} << 44;
constexpr uint64_t kHeap = uint64_t{1} << 46;
constexpr uint64_t kEnd = uint64_t{1} << 47;

// Agents: 40 bits, which hold paths of up to five levels. A longer path becomes a hash below 0xff.
constexpr int kAgentBits = 40;
// Heap objects: 24 bits for the allocating agent (three levels) and 11 for the ordinal, or again a hash below
// 0xff.
constexpr int kHeapAgentBits = 24;
constexpr int kOrdinalBits = 11;
constexpr int kHeapObjectBits = 11;  // a header and 255 cells of 8 bytes
static_assert((kToyMaxHeapCells + 1) * 8 == 1 << kHeapObjectBits);
static_assert(kHeapAgentBits + kOrdinalBits + kHeapObjectBits == 46);

// Returns the first `bits` bits of a path; nothing if the path is longer, or is itself a hash.
std::optional<uint64_t> path_prefix(AgentId id, int bits) {
  const bool folded = (id.raw >> 56) == 0xff;
  if (folded || (id.raw << bits) != 0) return std::nullopt;
  return id.raw >> (64 - bits);
}
uint64_t folded(uint64_t hash, int bits) {
  const uint64_t below = (uint64_t{1} << (bits - 8)) - 1;
  return (uint64_t{0xff} << (bits - 8)) | (hash & below);
}
AgentId from_prefix(uint64_t prefix, int bits) {
  return (prefix >> (bits - 8)) == 0xff ? AgentId{} : AgentId{prefix << (64 - bits)};
}
uint64_t agent_number(AgentId id) {
  return path_prefix(id, kAgentBits).value_or(folded(mix(id.raw), kAgentBits)) << 3;
}

}  // namespace

uint32_t ToyProgram::cells() const {
  return shared.empty() ? 0 : shared.back().first + shared.back().size;
}

uint32_t ToyProgram::sync_objects() const {
  return sync.empty() ? 0 : sync.back().first + sync.back().size;
}

const ToySyncObject& ToyProgram::sync_at(uint32_t index) const {
  const auto found = std::find_if(sync.begin(), sync.end(), [&](const ToySyncObject& object) {
    return index - object.first < object.size;
  });
  CHECK(found != sync.end(), "no synchronisation object {}", index);
  return *found;
}

ObjectId toy_sync(uint32_t index) {
  return ObjectId{kSync + index * 8};
}
ObjectId toy_interrupt(uint32_t block) {
  return ObjectId{kInterrupts + block * 8};
}
ObjectId toy_timer(uint32_t block) {
  return ObjectId{kTimers + block * 8};
}
ObjectId toy_agent(AgentId id) {
  return ObjectId{kAgents + agent_number(id)};
}
ObjectId toy_cpu(AgentId id) {
  return ObjectId{kCpus + agent_number(id)};
}

ObjectId toy_heap(AgentId allocator, uint32_t ordinal) {
  constexpr int kBits = kHeapAgentBits + kOrdinalBits;
  const auto prefix = path_prefix(allocator, kHeapAgentBits);
  const uint64_t number = prefix && ordinal < (1u << kOrdinalBits)
                              ? (*prefix << kOrdinalBits) | ordinal
                              : folded(combine(allocator.raw, ordinal), kBits);
  return ObjectId{kHeap + (number << kHeapObjectBits)};
}

ObjectId toy_heap_cell(ObjectId heap, uint32_t cell) {
  return ObjectId{heap.raw + (uint64_t{cell} + 1) * 8};
}

ToyObjectName toy_object_name(ObjectId id) {
  using Range = ToyObjectName::Range;
  const auto index_from = [&](uint64_t base) { return static_cast<uint32_t>((id.raw - base) / 8); };
  if (id.raw < kToyCells || id.raw >= kEnd) return {};
  if (id.raw < kSync) return {Range::Cell, index_from(kToyCells), {}, {}};
  if (id.raw < kInterrupts) return {Range::Sync, index_from(kSync), {}, {}};
  if (id.raw < kTimers) return {Range::Interrupt, index_from(kInterrupts), {}, {}};
  if (id.raw < kStaticEnd) return {Range::Timer, index_from(kTimers), {}, {}};
  if (id.raw < kAgents) return {};
  if (id.raw < kCpus) return {Range::Agent, 0, from_prefix((id.raw - kAgents) >> 3, kAgentBits), {}};
  if (id.raw < kHeap) return {Range::Cpu, 0, from_prefix((id.raw - kCpus) >> 3, kAgentBits), {}};
  const uint64_t number = (id.raw - kHeap) >> kHeapObjectBits;
  const uint64_t cell = (id.raw >> 3) & kToyMaxHeapCells;
  ToyObjectName name{Range::Heap, static_cast<uint32_t>(number & ((1 << kOrdinalBits) - 1)), {}, {}};
  name.agent = from_prefix(number >> kOrdinalBits, kHeapAgentBits);
  if (cell != 0) name.cell = static_cast<uint32_t>(cell - 1);
  return name;
}

}  // namespace slalom
