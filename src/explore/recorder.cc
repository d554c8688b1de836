#include "explore/recorder.h"

#include <algorithm>

namespace slalom {
namespace {
constexpr uint64_t kGranule = 8;
constexpr uint64_t kAhead = 24 * kGranule;  // in a long access
constexpr size_t kSoon = 12;                // accesses
constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;
}  // namespace

// Inlined wherever it is used, and so is the next function: the call would be most of the work for an access.
[[gnu::always_inline]] inline uint64_t& Recorder::hash_of(AgentId agent) {
  if (last_agent_ && agent == last_agent_) return *last_hash_;
  last_hash_ = &history_.agents[agent.raw];
  if (*last_hash_ == 0) *last_hash_ = fold(agent.raw, kOdd);
  last_agent_ = agent;
  return *last_hash_;
}

[[gnu::always_inline]] inline uint64_t Recorder::touch(uint64_t& last, ObjectId object, OpKind op,
                                                       Effect effect) {
  // The agent's own hash began with the agent's id. The combinations that are not folded consist of hashes,
  // or of an object and a small number.
  uint64_t hash = fold(last, object.raw + static_cast<uint64_t>(op) * kOdd);
  if (effect != Effect::None) {
    History::ObjectHash& known = history_.objects[History::key(object)];
    if (effect == Effect::Write) {
      hash = fold(hash, known.write + known.reads * kOdd);
      known = {hash, 0};
    } else {
      hash = fold(hash, known.write);
      known.reads += hash;
    }
  }
  last = hash;
  history_.sum += hash;
  return hash;
}

void Recorder::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  uint64_t& last = hash_of(header.agent);
  for (size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    if (i + kSoon < accesses.size()) {
      const Access& soon = accesses[i + kSoon];
      history_.objects.prefetch(History::key(ObjectId{soon.address().raw / kGranule * kGranule}));
    }
    const OpKind op = access.op();
    if (!is_memory(op)) continue;  // a call or return, which a CPU may report twice if it stops there
    if (access.unordered) continue;
    if (access.is_private) {  // no other agent uses the memory, so only the fact that the agent did it counts
      last = fold(last, access.address_bits << 8 | access.op_bits);
      history_.sum += last;
      continue;
    }
    const Effect effect = access.wrote ? Effect::Write : Effect::Read;
    const uint64_t address = access.address().raw;
    const uint64_t end = address + access.size;
    uint64_t granule = address / kGranule * kGranule;
    for (;;) {
      if (keep_touches_) execution_->touches.push_back({ObjectId{granule}, 0, {}, op, effect});
      touch(last, ObjectId{granule}, op, effect);
      granule += kGranule;
      if (granule >= end) [[likely]]
        break;
      history_.objects.prefetch(History::key(ObjectId{granule + kAhead}));
    }
  }
}

void Recorder::on_event(const Event& event) {
  if (event.recognised) return;
  // A timer may fire after any arming that was not cancelled; a handler may be delivered for an earlier
  // raise, or run already. The timer and the interrupt are objects, and say which orders are possible. The
  // wake-up would order everything that follows after the last arming or raise.
  const bool of_context =
      event.op == OpKind::Wake && (last_op_ == OpKind::TimerArm || last_op_ == OpKind::IrqRaise);
  last_op_ = event.op;
  if (of_context) return;
  Effect does = effect(event.op);
  // Readers of the lock only read it too, but a TryLock that fails because of them depends on them.
  if (event.op == OpKind::TryLock && event.value == 0 && event.state < 2) does = Effect::Read;
  // The moment at which a text is reported is that at which the machine reads it. It differs from search to
  // search.
  if (event.op == OpKind::Note || event.op == OpKind::Fail || event.op == OpKind::Console) return;
  if (keep_touches_) execution_->touches.push_back({event.object, event.state, event.other, event.op, does});
  const uint64_t hash = touch(hash_of(event.agent), event.object, event.op, does);
  // An operation that wakes or starts an agent comes before everything that this agent does from then on.
  if (event.other && event.other != event.agent && event.op != OpKind::Join) {
    uint64_t& woken = hash_of(event.other);
    woken = fold(woken, hash);
  }
}

void Recorder::on_value(AgentId agent, uint32_t value) {
  uint64_t& last = hash_of(agent);
  last = combine(last, value, 1);
  history_.sum += last;
}

}  // namespace slalom
