// DporWalk: makes the decisions of one execution of dpor. It takes the transition of a leaf of the wakeup
// tree, then goes on in the default order among the agents that do not sleep. Dpor itself learns from the
// execution.
#pragma once

#include <vector>

#include "explore/strategy.h"

namespace slalom {

class DporWalk : public Walker {
 public:
  // Reason of Abandoned if the execution is not needed.
  static constexpr const char* kElsewhere = "explored elsewhere";

  explicit DporWalk(DporHint hint) : hint_(std::move(hint)) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override;

 private:
  bool sleeps(AgentId agent) const;
  void wake(const Execution& so_far);

  DporHint hint_;  // its sleepers are those that have not been woken
  size_t transitions_ = 0;
  size_t values_ = 0;
  size_t first_choice_ = 0;
  std::vector<Option> awake_;
};

}  // namespace slalom
