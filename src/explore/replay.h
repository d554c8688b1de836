// replay: follows a Schedule and decides nothing itself.
//
// Guarantee: on the same target, the execution is the one that the schedule was taken from, under any
// ChoicePolicy that stops at the schedule's positions (stops_of()). If the schedule does not fit (the agent
// cannot run, a switch is never reached), the walker goes on in the default order, and divergence() returns
// the first problem.
#pragma once

#include <optional>
#include <string>

#include "explore/strategy.h"
#include "trace/choice_policy.h"

namespace slalom {

class ScheduleWalker : public Walker {
 public:
  explicit ScheduleWalker(const Schedule& schedule) : schedule_(schedule) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override;
  bool fair() const override { return false; }
  // Returns the first difference, if there was one. Call it after the execution has ended.
  std::optional<std::string> divergence() const;

 private:
  const Schedule& schedule_;
  size_t next_switch_ = 0;
  size_t next_data_ = 0;
  std::optional<std::string> divergence_;
};

// Returns the positions at which a machine must stop for this schedule.
std::vector<ChoicePolicy::AgentPosition> stops_of(const Schedule& schedule);

}  // namespace slalom
