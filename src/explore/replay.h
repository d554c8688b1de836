// replay: follows a Schedule, and nothing else.
//
// Guarantee: on the same target the execution is the one the schedule was taken from, under any ChoicePolicy
// that stops at the schedule's positions (stops_of()). Where the schedule does not fit (the agent cannot run,
// a switch is never reached) the walker goes on in the default order and divergence() says what happened
// first.
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
  // What first differed, if anything did. To be asked when the execution has ended.
  std::optional<std::string> divergence() const;

 private:
  const Schedule& schedule_;
  size_t next_switch_ = 0;
  size_t next_data_ = 0;
  std::optional<std::string> divergence_;
};

// The positions at which a machine must stop for this schedule to be followed.
std::vector<ChoicePolicy::Position> stops_of(const Schedule& schedule);

}  // namespace slalom
