#include "explore/fairness.h"

#include <algorithm>
#include <utility>

namespace slalom {
namespace {

constexpr size_t kLongestLoop = 32;  // in choice points; an agent cannot insist on a longer loop

// Returns the agent's next operation. The yield itself is over, so the operation after it says where the
// yield was.
Place place_of(AgentId agent, const std::vector<Option>& options) {
  const auto at = std::find_if(options.begin(), options.end(),
                               [&](const Option& option) { return option.agent == agent; });
  return at == options.end() ? Place{} : at->op.pc;
}

bool has(const std::vector<Place>& places, Place place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

// Returns false if the place was there already.
bool add(std::vector<Place>& places, Place place) {
  if (has(places, place)) return false;
  places.push_back(place);
  return true;
}

}  // namespace

// The agent gives way to the agents that it starved, unless it yields at this place for the first time, or
// may insist.
void Fairness::yields(PerAgent& agent, Place place) {
  if (add(agent.yields, place)) return;
  AgentSet starved = agent.enabled;
  starved |= agent.disabled;
  starved -= agent.scheduled;
  if (turns_ > 0 && !starved.empty() && add(agent.offers, place))
    agent.turns = turns_;
  else
    agent.starved_by_priority |= starved;
}

// Returns whether the agent that ran last insists and is still in the loop in which it insisted.
bool Fairness::goes_on_alone(PerAgent& agent, ChoiceKind kind, Place place) {
  if (kind == ChoiceKind::Yielded) {
    if (agent.turns > 0) --agent.turns;
    agent.loop.swap(agent.passed);
    agent.passed.clear();
  } else if (kind != ChoiceKind::Running || !has(agent.loop, place)) {
    agent.turns = 0;
  }
  if (agent.passed.size() < kLongestLoop) agent.passed.push_back(place);
  return agent.turns > 0;
}

void Fairness::filter(const ChoicePoint& point, std::vector<Option>& options) {
  if (!concerns(point)) return;
  AgentSet enabled;
  for (const Option& option : options) enabled.add(table_.index(option.agent));
  const size_t ran = point.current ? table_.index(point.current) : 0;
  agents_.resize(table_.size());
  if (!std::exchange(yielded_, true)) enabled_before_ = enabled;
  bool insists = false;
  if (point.current) {
    for (PerAgent& agent : agents_) {
      agent.starved_by_priority.remove(ran);
      agent.enabled &= enabled;
      agent.scheduled.add(ran);
      if (&agent != &agents_[ran]) agent.turns = 0;
    }
    AgentSet disabled_now = enabled_before_;
    disabled_now -= enabled;
    PerAgent& self = agents_[ran];
    self.disabled |= disabled_now;
    const Place place = place_of(point.current, options);
    insists = goes_on_alone(self, point.kind, place);
    if (point.kind == ChoiceKind::Yielded) {
      if (!insists) yields(self, place);
      self.enabled = enabled;
      self.disabled = AgentSet();
      self.scheduled = AgentSet();
    }
  }
  enabled_before_ = enabled;
  const size_t before = options.size();
  std::erase_if(options, [&](const Option& option) {
    return insists ? option.agent != point.current
                   : agents_[table_.index(option.agent)].starved_by_priority.intersects(enabled);
  });
  withheld_ = withheld_ || options.size() < before;
}

uint64_t Fairness::hash_all() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < agents_.size(); ++i) {
    const PerAgent& agent = agents_[i];
    sum += combine(table_.agent(i).raw, agent.starved_by_priority.hash(), agent.scheduled.hash(),
                   agent.enabled.hash(), agent.disabled.hash());
    for (Place place : agent.offers) sum += combine(table_.agent(i).raw, place.raw, agent.turns);
  }
  return sum;
}

}  // namespace slalom
