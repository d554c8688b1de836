// Passing stops without asking: if only one agent can run, or the forecast tells which agent the search will
// choose, the target goes on by itself and reports the stop later. Each passed stop saves two switches
// between processes.
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

bool has(uint64_t set, uint32_t index) {
  return (set >> index & 1) != 0;
}

}  // namespace

bool Runtime::passes(ChoiceKind kind) {
  if (kind == ChoiceKind::Data || kind == ChoiceKind::Start || channel_->steps >= channel_->max_steps)
    return false;
  uint64_t enabled = 0;
  const uint32_t next = predict_next(kind, enabled);
  if (next == kNoAgent) return false;
  tell_stop(kind, next, enabled);
  if (next != self()) pass_turn(next);
  return true;
}

// Returns the agent that runs next; kNoAgent if slalom must decide. Sets `enabled` to the mask of agents that
// could run, 0 if there are too many agents for a mask.
uint32_t Runtime::predict_next(ChoiceKind kind, uint64_t& enabled) {
  uint32_t count = 0, last = kNoAgent;
  for (uint32_t i = 0; i < agent_count(); ++i) {
    if (slot(i).state != Slot::State::Enabled) continue;
    ++count;
    last = i;
    if (i < kMostInMask) enabled |= uint64_t{1} << i;
  }
  if (count == 0) return kNoAgent;
  if (agent_count() > kMostInMask) {
    enabled = 0;
    forget_forecast();
    return count == 1 ? last : kNoAgent;
  }
  yielded_ = yielded_ || kind == ChoiceKind::Yielded;
  const Channel::Forecast& forecast = channel_->forecast;
  if (foreseen_ < forecast.agent_count) {
    const uint64_t id = forecast.agents[foreseen_++];
    for (uint32_t i = 0; i < agent_count(); ++i)
      if (has(enabled, i) && slot(i).id == id) return i;
    return kNoAgent;  // differs from the recorded execution
  }
  const bool goes_on = kind == ChoiceKind::Running;
  // After a yield, fairness may restrict the search's choice.
  const ChoiceRule::Kind rule = yielded_ ? ChoiceRule::Kind::Unknown : forecast.rule.kind;
  if (rule == ChoiceRule::Kind::Unknown) return count == 1 ? last : kNoAgent;
  return rule == ChoiceRule::Kind::InOrder ? predict_in_order(enabled, goes_on)
                                           : predict_drawn(enabled, goes_on);
}

// Chooses as next_in_order() of the search does.
uint32_t Runtime::predict_in_order(uint64_t enabled, bool goes_on) const {
  if (goes_on && has(enabled, self())) return self();
  uint32_t first = kNoAgent;
  for (uint32_t i = 0; i < agent_count(); ++i) {
    const uint32_t index = order_[i];
    if (!has(enabled, index)) continue;
    if (slot(index).id > slot(self()).id) return index;
    if (first == kNoAgent) first = index;
  }
  return first;
}

uint32_t Runtime::predict_drawn(uint64_t enabled, bool goes_on) {
  uint8_t able[kMostInMask];
  uint32_t count = 0;
  for (uint32_t i = 0; i < agent_count(); ++i)
    if (has(enabled, order_[i])) able[count++] = order_[i];
  ChoiceRule& rule = channel_->forecast.rule;
  int64_t* const priorities = channel_->forecast.priorities;
  const auto priority = [&](size_t i) -> int64_t& { return priorities[able[i]]; };
  switch (rule.kind) {
    case ChoiceRule::Kind::Pct:
      rule.pct.pass(channel_->steps, [&](int64_t value) { priorities[self()] = value; });
      return able[rule.pct.choose(count, priority)];
    case ChoiceRule::Kind::Pos: {
      const size_t chosen = rule.pos.choose(
          count, priority, [&](size_t i) { return slot(able[i]).op; },
          [&](size_t i) { return slot(able[i]).object; });
      priority(chosen) = kNoPriority;
      return able[chosen];
    }
    default: {
      const size_t last = rule.uniform.chosen;
      return able[rule.uniform.choose(count, goes_on && last < count && able[last] == self(), enabled)];
    }
  }
}

void Runtime::forget_forecast() {
  channel_->forecast.rule.kind = ChoiceRule::Kind::Unknown;
  channel_->forecast.agent_count = foreseen_ = 0;
}

void Runtime::order_agent(uint32_t index) {
  if (index >= kMostInMask) return;
  uint32_t at = index;
  for (; at > 0 && slot(order_[at - 1]).id > slot(index).id; --at) order_[at] = order_[at - 1];
  order_[at] = static_cast<uint8_t>(index);
}

}  // namespace slalom::preload
