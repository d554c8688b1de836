#include "explore/recorder.h"

namespace slalom {
namespace {
constexpr uint64_t kGranule = 8;
}  // namespace

void Recorder::on_accesses(std::span<const Access> accesses, const BatchHeader& header) {
  uint64_t& last = hash_of(header.agent);
  for (const Access& access : accesses) {
    if (!is_memory(access.op())) continue;  // a call or return: a CPU may tell it twice, where it stops
    if (access.aside) continue;
    const Effect effect = access.wrote ? Effect::Write : Effect::Read;
    const uint64_t first = access.address().raw / kGranule;
    const uint64_t end = (access.address().raw + (access.size > 0 ? access.size - 1 : 0)) / kGranule;
    for (uint64_t granule = first; granule <= end; ++granule)
      touch(header.agent, last, Touch{ObjectId{granule * kGranule}, 0, {}, access.op(), effect});
  }
}

void Recorder::on_event(const Event& event) {
  if (event.recognised) return;
  // A timer may fire after any arming that was not cancelled, a handler may be delivered for an earlier raise
  // or be running already: the timer and the interrupt, as objects, say which orders are possible, while the
  // wake-up would tie all that follows to the last one.
  const bool of_context =
      event.op == OpKind::Wake && (last_op_ == OpKind::TimerArm || last_op_ == OpKind::IrqRaise);
  last_op_ = event.op;
  if (of_context) return;
  Effect does = effect(event.op);
  if (event.op == OpKind::TryLock && event.value == 0) does = Effect::Read;
  // Texts are told when somebody has read them, which is another moment in every search.
  if (event.op == OpKind::Note || event.op == OpKind::Fail || event.op == OpKind::Console) return;
  const uint64_t hash =
      touch(event.agent, hash_of(event.agent), Touch{event.object, event.state, event.other, event.op, does});
  // What wakes or starts an agent comes before all it does from then on.
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

uint64_t& Recorder::hash_of(AgentId agent) {
  if (!last_agent_ || agent != last_agent_) {
    last_hash_ = &history_.agents[agent.raw];
    last_agent_ = agent;
  }
  return *last_hash_;
}

uint64_t Recorder::touch(AgentId agent, uint64_t& last, const Touch& touch) {
  if (keep_touches_) execution_->touches.push_back(touch);
  uint64_t hash = fold(fold(last, agent.raw), fold(touch.object.raw, static_cast<uint64_t>(touch.op)));
  if (touch.effect != Effect::None) {
    History::ObjectHash& object = history_.objects[touch.object.raw];
    hash = fold(hash, fold(object.write, touch.effect == Effect::Write ? object.reads : 0));
    if (touch.effect == Effect::Write)
      object = {hash, 0};
    else
      object.reads += hash;
  }
  last = hash;
  history_.sum += hash;
  return hash;
}

}  // namespace slalom
