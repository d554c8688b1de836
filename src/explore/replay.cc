#include "explore/replay.h"

#include <fmt/format.h>

#include <algorithm>

namespace slalom {

std::variant<Decision, Abandoned> ScheduleWalker::choose(const ChoicePoint& point,
                                                         std::span<const Option> options, const Execution&) {
  const auto has = [&](AgentId agent) {
    return std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.agent == agent; });
  };
  const auto diverge = [&](std::string what) {
    if (!divergence_) divergence_ = std::move(what);
  };
  if (point.kind == ChoiceKind::Data) {
    if (next_data_ < schedule_.data.size()) {
      const DataChoice& choice = schedule_.data[next_data_];
      if (choice.agent == point.current && choice.ops == point.current_ops && choice.value < point.arity) {
        ++next_data_;
        return Decision{point.current, choice.value};
      }
    }
    diverge(fmt::format("step {}: a choice of one in {} that the schedule does not know", point.position.raw,
                        point.arity));
    return Decision{point.current};
  }
  if (next_switch_ < schedule_.switches.size()) {
    const Switch& next = schedule_.switches[next_switch_];
    if (next.from == point.current && next.from_ops == point.current_ops) {
      ++next_switch_;
      if (has(next.to)) return Decision{next.to};
      diverge(fmt::format("step {}: the schedule switches to agent {}, which cannot run", point.position.raw,
                          next.to.path()));
    }
  }
  // No switch is recorded if the agent that ends is a timer, and the same timer runs next.
  if (has(point.current)) return Decision{point.current};
  diverge(fmt::format("step {}: agent {} cannot go on and the schedule does not say who does",
                      point.position.raw, point.current.path()));
  return Decision{next_in_order(point, options).agent};
}

std::optional<std::string> ScheduleWalker::divergence() const {
  if (divergence_) return divergence_;
  if (next_switch_ < schedule_.switches.size()) {
    const Switch& next = schedule_.switches[next_switch_];
    return fmt::format("the execution never got to where agent {} gives way to {}, after {} operations",
                       next.from.path(), next.to.path(), next.from_ops);
  }
  if (next_data_ < schedule_.data.size()) {
    const DataChoice& next = schedule_.data[next_data_];
    return fmt::format("the execution never got to where agent {} chooses a value, after {} operations",
                       next.agent.path(), next.ops);
  }
  return std::nullopt;
}

std::vector<ChoicePolicy::AgentPosition> stops_of(const Schedule& schedule) {
  std::vector<ChoicePolicy::AgentPosition> stops;
  for (const Switch& s : schedule.switches)
    if (s.from) stops.push_back({s.from, s.from_ops});
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  return stops;
}

}  // namespace slalom
