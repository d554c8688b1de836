#include "explore/fairness.h"

#include <algorithm>
#include <utility>

namespace slalom {
namespace {

// The yield itself is over: what follows it tells where it was.
Place place_of(AgentId agent, const std::vector<Option>& options) {
  const auto at = std::find_if(options.begin(), options.end(),
                               [&](const Option& option) { return option.agent == agent; });
  return at == options.end() ? Place{} : at->op.pc;
}

}  // namespace

bool Fairness::yields_again(PerAgent& agent, Place place) {
  if (std::find(agent.yields.begin(), agent.yields.end(), place) != agent.yields.end()) return true;
  agent.yields.push_back(place);
  return false;
}

void Fairness::filter(const ChoicePoint& point, std::vector<Option>& options) {
  if (!concerns(point)) return;
  AgentSet enabled;
  for (const Option& option : options) enabled.add(table_.index(option.agent));
  const size_t ran = point.current ? table_.index(point.current) : 0;
  agents_.resize(table_.size());
  if (!std::exchange(yielded_, true)) enabled_before_ = enabled;
  if (point.current) {
    for (PerAgent& agent : agents_) {
      agent.starved_by_priority.remove(ran);
      agent.enabled &= enabled;
      agent.scheduled.add(ran);
    }
    AgentSet disabled_now = enabled_before_;
    disabled_now -= enabled;
    agents_[ran].disabled |= disabled_now;
    if (point.kind == ChoiceKind::Yielded) {
      PerAgent& self = agents_[ran];
      if (yields_again(self, place_of(point.current, options))) {
        AgentSet starved = self.enabled;
        starved |= self.disabled;
        starved -= self.scheduled;
        self.starved_by_priority |= starved;
      }
      self.enabled = enabled;
      self.disabled = AgentSet();
      self.scheduled = AgentSet();
    }
  }
  enabled_before_ = enabled;
  std::erase_if(options, [&](const Option& option) {
    return agents_[table_.index(option.agent)].starved_by_priority.intersects(enabled);
  });
}

uint64_t Fairness::hash_all() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < agents_.size(); ++i) {
    const PerAgent& agent = agents_[i];
    sum += combine(table_.agent(i).raw, agent.starved_by_priority.hash(), agent.scheduled.hash(),
                   agent.enabled.hash(), agent.disabled.hash());
  }
  return sum;
}

}  // namespace slalom
