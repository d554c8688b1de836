#include "explore/happens_before.h"

#include <algorithm>

namespace slalom {

void HappensBefore::build(const Execution& execution) {
  execution_ = &execution;
  table_.clear();
  overtaken_.clear();
  count_ = 0;
  const auto& choices = execution.choices;
  for (uint32_t i = 0; i < choices.size(); ++i) {
    if (choices[i].kind == ChoiceKind::Data) {
      CHECK(count_ > 0, "a data choice before the first transition");
      transitions_[count_ - 1].values.push_back(choices[i].taken.value);
    } else {
      if (count_ == transitions_.size()) transitions_.emplace_back();
      Transition& transition = transitions_[count_++];
      transition.agent = choices[i].taken.agent;
      transition.lane = static_cast<uint32_t>(table_.index(transition.agent));
      transition.choice = i;
      transition.values.clear();
    }
    const size_t first = choices[transitions_[count_ - 1].choice].first_touch;
    const size_t end = i + 1 < choices.size() ? choices[i + 1].first_touch : execution.touches.size();
    transitions_[count_ - 1].touches = std::span(execution.touches).subspan(first, end - first);
  }
  for (const Touch& touch : execution.touches)
    if (touch.other) table_.index(touch.other);
  for (const Option& option : execution.blocked) table_.index(option.agent);

  lanes_ = table_.size();
  clocks_.assign(count_ * lanes_, 0);
  own_clocks_.assign(count_ * lanes_, 0);
  agent_clocks_.assign(lanes_ * lanes_, 0);
  object_slots_.clear();
  for (size_t i = 0; i < slots_; ++i) uses_[i].clear();
  slots_ = 0;

  for (size_t i = 0; i < count_; ++i) {
    Transition& transition = transitions_[i];
    uint32_t* agent = &agent_clocks_[transition.lane * lanes_];
    transition.ordinal = agent[transition.lane] + 1;
    uint32_t* own = &own_clocks_[i * lanes_];
    std::copy_n(agent, lanes_, own);
    uint32_t* full = &clocks_[i * lanes_];
    std::copy_n(agent, lanes_, full);
    for (const Touch& touch : transition.touches) {
      if (touch.effect == Effect::None) continue;
      uint32_t& slot = object_slots_[touch.object.raw];
      if (slot == 0) {
        slot = static_cast<uint32_t>(++slots_);
        if (uses_.size() < slots_) uses_.emplace_back();
      }
      std::vector<Use>& uses = uses_[slot - 1];
      const uint32_t last_write = uses.empty() ? 0 : uses.back().last_write;
      const bool writes = touch.effect == Effect::Write;
      // The last write brings everything before it. A write also comes after the reads since then.
      const size_t first = last_write > 0 ? last_write - 1 : 0;
      const size_t end = writes ? uses.size() : last_write;
      for (size_t u = first; u < end; ++u)
        if (uses[u].transition != i) join(full, clock(uses[u].transition));
      uses.push_back({static_cast<uint32_t>(i), static_cast<uint32_t>(&touch - execution.touches.data()),
                      writes ? static_cast<uint32_t>(uses.size() + 1) : last_write});
    }
    if (ends_all(transition.touches))
      for (size_t lane = 0; lane < lanes_; ++lane) join(full, &agent_clocks_[lane * lanes_]);
    full[transition.lane] = transition.ordinal;
    std::copy_n(full, lanes_, agent);
    for (const Touch& touch : transition.touches) {
      if (touch.other && touch.op != OpKind::Join && touch.other != transition.agent)
        join(&agent_clocks_[table_.index(touch.other) * lanes_], full);
    }
  }
  add_blocked();
  add_overtaken();
}

// Adds one transition for each agent that was waiting at the end. It has its past and its touches, but no
// place in the order.
void HappensBefore::add_blocked() {
  blocked_ = 0;
  blocked_touches_.clear();
  for (const Option& option : execution_->blocked) {
    Touch touch{option.op.object, 0, {}, option.op.kind, effect(option.op.kind)};
    if (const uint32_t* slot = object_slots_.find(touch.object.raw);
        slot != nullptr && !uses_[*slot - 1].empty()) {
      const Touch& last = execution_->touches[uses_[*slot - 1].back().touch];
      touch.state = state_after(last.op, last.state);
    }
    blocked_touches_.push_back(touch);
  }
  for (size_t i = 0; i < blocked_touches_.size(); ++i) {
    const AgentId agent = execution_->blocked[i].agent;
    if (i > 0 && execution_->blocked[i - 1].agent == agent) continue;
    size_t end = i + 1;
    while (end < blocked_touches_.size() && execution_->blocked[end].agent == agent) ++end;
    add_without_place(agent, &agent_clocks_[table_.index(agent) * lanes_],
                      std::span(blocked_touches_).subspan(i, end - i));
    ++blocked_;
  }
}

void HappensBefore::add_without_place(AgentId agent, const uint32_t* clock, std::span<const Touch> touches) {
  const size_t at = with_blocked() + overtaken_.size();
  if (at == transitions_.size()) transitions_.emplace_back();
  Transition& transition = transitions_[at];
  transition.agent = agent;
  transition.lane = static_cast<uint32_t>(table_.index(agent));
  transition.ordinal = clock[transition.lane] + 1;
  transition.values.clear();
  transition.touches = touches;
  own_clocks_.insert(own_clocks_.end(), clock, clock + lanes_);
}

void HappensBefore::add_overtaken() {
  limit_touches_.clear();
  for (const Touch& touch : execution_->touches)  // reserves the space, so that the touches do not move
    if (touch.op == OpKind::Wake) limit_touches_.emplace_back();
  size_t used = 0;
  for (uint32_t i = 0; i < count_; ++i)
    for (const Touch& touch : transitions_[i].touches) {
      if (touch.op != OpKind::Wake) continue;
      const auto options = execution_->options_at(transitions_[i].choice);
      const auto waiting = std::find_if(options.begin(), options.end(), [&](const Option& option) {
        return option.agent == touch.other && option.op.kind == OpKind::TimerFire;
      });
      if (waiting == options.end()) continue;
      Touch& limit = limit_touches_[used++];
      limit = {waiting->op.object, 1, {}, OpKind::TimerFire, effect(OpKind::TimerFire)};
      if (!is_limit(limit)) continue;
      const size_t lane = table_.index(touch.other);
      size_t last = i;
      while (last > 0 && transitions_[last].lane != lane) --last;
      add_without_place(touch.other, clock(last), std::span(&limit, 1));
      overtaken_.push_back({i, static_cast<uint32_t>(with_blocked() + overtaken_.size())});
    }
}

// Returns whether the limit belongs to a wait, and not to a timer that is armed and cancelled.
bool HappensBefore::is_limit(const Touch& touch) const {
  if (touch.op != OpKind::TimerFire) return false;
  const uint32_t* slot = object_slots_.find(touch.object.raw);
  return slot == nullptr || std::ranges::none_of(uses_[*slot - 1], [&](const Use& use) {
           const OpKind op = execution_->touches[use.touch].op;
           return op == OpKind::TimerArm || op == OpKind::TimerCancel;
         });
}

OpKind HappensBefore::pending(size_t i) const {
  if (i < count_)
    for (const Option& option : execution_->options_at(transitions_[i].choice))
      if (option.agent == transitions_[i].agent) return option.op.kind;
  return touches(i).empty() ? OpKind::None : touches(i).front().op;
}

void HappensBefore::join(uint32_t* into, const uint32_t* from) const {
  for (size_t i = 0; i < lanes_; ++i) into[i] = std::max(into[i], from[i]);
}

void HappensBefore::races(size_t j, Ancestors which, std::vector<uint32_t>& found) const {
  found.clear();
  const Transition& last = transitions_[j];
  const uint32_t* own = clock_without_objects(j);
  if (ends_all(last.touches)) {
    for (size_t e = std::min(j, count_); e-- > 0;) {
      const Transition& first = transitions_[e];
      if (first.lane != last.lane && own[first.lane] < first.ordinal &&
          is_new(static_cast<uint32_t>(e), which, found) &&
          (which == Ancestors::AllAndAwaited || could_precede(e, j)))
        found.push_back(static_cast<uint32_t>(e));
    }
    return;
  }
  for (const Touch& touch : touches(j)) {
    if (touch.effect == Effect::None) continue;
    const uint32_t* slot = object_slots_.find(touch.object.raw);
    if (slot == nullptr) continue;  // no transition touched the object of the wait
    const std::vector<Use>& uses = uses_[*slot - 1];
    const auto at_j = std::lower_bound(uses.begin(), uses.end(), j,
                                       [](const Use& use, size_t at) { return use.transition < at; });
    // A read conflicts only with writes, so the search goes from each write to the one before.
    const auto conflicting = [&](size_t end) -> size_t {
      return end == 0 || touch.effect == Effect::Write ? end : uses[end - 1].last_write;
    };
    for (size_t u = conflicting(static_cast<size_t>(at_j - uses.begin())); u > 0; u = conflicting(u - 1)) {
      const uint32_t e = uses[u - 1].transition;
      const bool writes = uses[u - 1].last_write == u;
      const Transition& first = transitions_[e];
      if (first.lane == last.lane || own[first.lane] >= first.ordinal) {
        if (writes) break;  // everything before it is ordered too
        continue;
      }
      if (is_new(e, which, found)) {
        if (which != Ancestors::AllAndAwaited && !could_precede(e, j)) continue;
        found.push_back(e);
      }
      if (writes && which == Ancestors::Immediate) break;  // everything before it comes before a found one
    }
  }
}

bool HappensBefore::is_new(uint32_t e, Ancestors which, const std::vector<uint32_t>& found) const {
  return std::none_of(found.begin(), found.end(),
                      [&](uint32_t c) { return c == e || (which == Ancestors::Immediate && before(e, c)); });
}

// Returns whether j's operation could run in the place of e, after everything that does not depend on e.
bool HappensBefore::could_precede(size_t e, size_t j) const {
  for (const Touch& touch : touches(j)) {
    const bool may_fail = !is_context_op(touch.op) && pending(j) == OpKind::TryLock;
    if (!may_fail && !is_limit(touch) && may_block(touch.op) &&
        !can_run(touch.op, state_without(e, j, touch)))
      return false;
    // Only the transition's first operation must be able to run. Touches that say that the agent is
    // interruptible, or an interrupt pending, belong to that operation.
    if (!is_context_op(touch.op)) break;
  }
  return true;
}

// Returns the state of the touched object just before j, without e and everything that comes after e.
uint64_t HappensBefore::state_without(size_t e, size_t j, const Touch& touch) const {
  const uint32_t* slot = object_slots_.find(touch.object.raw);
  if (slot == nullptr) return touch.state;
  const std::vector<Use>& uses = uses_[*slot - 1];
  auto use = std::lower_bound(uses.begin(), uses.end(), e,
                              [](const Use& u, size_t at) { return u.transition < at; });
  if (use == uses.end() || use->transition >= j) return touch.state;
  uint64_t state = execution_->touches[use->touch].state;
  for (; use != uses.end() && use->transition < j; ++use) {
    if (use->transition == e || before(e, use->transition)) continue;
    state = state_after(execution_->touches[use->touch].op, state);
  }
  return state;
}

}  // namespace slalom
