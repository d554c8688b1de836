// The life of agents: creation, entry into their threads, rest and end. The end of the last agent, or exit(),
// ends the program.
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr Agent kNewAgent;

}  // namespace

AgentId Runtime::child_id() const {
  return AgentId{channel_->slots[self()].id}.child(agents_[self()].spawned);
}

uint32_t Runtime::add_agent(uint64_t entry) {
  const uint32_t index = channel_->agent_count;
  if (index >= kMostAgents) return kNoAgent;
  Slot& slot = channel_->slots[index];
  const bool first = self() == kNoAgent;
  slot.id = first ? AgentId::initial(0).raw : child_id().raw;
  slot.ops = 0;
  slot.entry = entry;
  slot.pc = entry;
  slot.object = 0;
  slot.turn.store(static_cast<uint32_t>(Turn::Wait), std::memory_order_relaxed);
  slot.op = OpKind::GoOn;
  slot.state = Slot::State::Enabled;
  if (!first) ++me().spawned;
  agents_[index] = kNewAgent;
  if (!first) agents_[index].blocked = me().blocked;
  agents_changed_ = true;
  channel_->agent_count = index + 1;
  order_agent(index);
  tell_agent(index);
  return index;
}

void Runtime::enter(uint32_t index) {
  set_self(index);
  wait_turn(index);
  tell(OpKind::GoOn, 0);
  retire();
}

void Runtime::set_ended(uint32_t index, bool ended) {
  channel_->slots[index].state = ended ? Slot::State::Ended : Slot::State::Enabled;
  agents_changed_ = true;
}

void Runtime::rest() {
  channel_->slots[self()].state = Slot::State::Ended;
  if (alone()) end_last();
  refresh();
  stop(ChoiceKind::Ended, 0);
}

void Runtime::end_agent() {
  const uint32_t index = self();
  Slot& slot = channel_->slots[index];
  arrive(OpKind::Exit, agent_object(slot), slot.pc);
  tell(OpKind::Exit, agent_object(slot), 0, 0, index);
  retire();
  if (alone()) end_last();
  slot.state = Slot::State::Ended;
  end_signals();
  refresh();
  stop(ChoiceKind::Ended, 0);
  for (;;) wait_turn(index);
}

// Other agents may run until the process has ended, and may read data that returned functions left on this
// stack. So this function stops further down the stack, because the frames here differ in a replay.
[[gnu::noinline]] void Runtime::yield_at_end() {
  constexpr size_t kStackGap = 4096;
  const void* room = __builtin_alloca(kStackGap);
  asm volatile("" ::"r"(room));
  arrive(OpKind::GoOn, 0, channel_->slots[self()].pc);
}

void Runtime::process_ends(int status) {
  if (!controls()) return;
  if (!alone()) yield_at_end();
  channel_->ending.kind = Ending::Kind::Exit;
  channel_->ending.agent = self();
  channel_->ending.status = static_cast<uint32_t>(status) & 0xff;
  tell(OpKind::Exit, 0);  // object 0: concerns all agents
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (i != self() && i != 0 && !ended(i) && !agents_[i].detached) {
      note_uncontrolled(Uncontrolled::LeakedThread);
      tell(OpKind::Note, agent_object(channel_->slots[i]), 0, 0, i, kLeakedThread.data());
    }
}

}  // namespace slalom::preload
