#include "explore/fairness.h"

#include <algorithm>

namespace slalom {

void Fairness::filter(const ChoicePoint& point, std::vector<Option>& options) {
  if (!yielded_ && point.kind != ChoiceKind::Yielded) return;
  AgentSet enabled;
  for (const Option& option : options) enabled.add(table_.index(option.agent));
  const size_t ran = point.current ? table_.index(point.current) : 0;
  agents_.resize(table_.size());
  if (!yielded_) {
    // Before the first yield of all, E is "everyone": take what is enabled now for what was enabled all
    // along.
    yielded_ = true;
    enabled_before_ = enabled;
    for (PerAgent& agent : agents_) agent.enabled = enabled;
  }
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
      AgentSet starved = self.enabled;
      starved |= self.disabled;
      starved -= self.scheduled;
      self.starved_by_priority |= starved;
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
