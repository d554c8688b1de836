#include "explore/strategies/dpor_walk.h"

#include <algorithm>

#include "explore/wakeup_tree.h"

namespace slalom {

std::variant<Decision, Abandoned> DporWalk::choose(const ChoicePoint& point, std::span<const Option> options,
                                                   const Execution& so_far) {
  using Reason = Abandoned::Reason;
  if (point.kind == ChoiceKind::Data) {
    const bool fixed = transitions_ == 1 && values_ < hint_.values.size();
    const uint32_t value = fixed ? hint_.values[values_++] : 0;
    if (value >= point.arity) return Abandoned{"not possible", Reason::NotPossible};
    return Decision{point.current, value};
  }
  if (transitions_++ > 0) wake(so_far);
  if (hint_.foreseen && transitions_ == 2 &&
      std::ranges::any_of(hint_.sleepers, [](const Sleeper& s) { return !s.fatal; }))
    return Abandoned{kElsewhere, Reason::Redundant};
  first_choice_ = so_far.choices.size() - 1;
  if (transitions_ == 1 && hint_.next) {
    for (const Option& option : options)
      if (option.agent == hint_.next) return Decision{hint_.next};
    return Abandoned{"not possible", Reason::NotPossible};
  }
  awake_.clear();
  for (const Option& option : options)
    if (!sleeps(option.agent)) awake_.push_back(option);
  if (awake_.empty()) return Abandoned{"all that could run sleeps", Reason::Redundant};
  return Decision{next_in_order(point, awake_).agent};
}

bool DporWalk::sleeps(AgentId agent) const {
  return std::ranges::any_of(hint_.sleepers, [&](const Sleeper& s) { return s.agent == agent; });
}

// Wakes the sleepers that depend on the transition that was just made.
void DporWalk::wake(const Execution& so_far) {
  std::vector<Sleeper>& sleepers = hint_.sleepers;
  if (sleepers.empty()) return;
  const size_t begin = so_far.choices[first_choice_].first_touch;
  const auto touches = std::span(so_far.touches).subspan(begin);
  const AgentId ran = so_far.choices[first_choice_].taken.agent;
  // An agent may sleep with several values of a data choice. If one of them wakes, the agent wakes.
  for (size_t i = 0; i < sleepers.size();) {
    const AgentId agent = sleepers[i].agent;
    if (agent == ran || conflict(sleepers[i].touches, touches)) {
      std::erase_if(sleepers, [&](const Sleeper& s) { return s.agent == agent; });
      i = 0;
    } else {
      ++i;
    }
  }
}

}  // namespace slalom
