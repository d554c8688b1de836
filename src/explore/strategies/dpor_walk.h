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

  explicit DporWalk(const Task& task)
      : sleepers_(task.sleepers), leaf_(task.parameters), foreseen_(task.number != 0) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override;

 private:
  bool sleeps(AgentId agent) const;
  void wake(const Execution& so_far);

  std::vector<Sleeper> sleepers_;
  std::vector<uint64_t> leaf_;  // the leaf's agent and data values; empty for the root
  bool foreseen_;               // the leaf is not needed if it does not wake all the sleepers that it should
  size_t transitions_ = 0;
  size_t values_ = 0;
  size_t first_choice_ = 0;
  std::vector<Option> awake_;
};

}  // namespace slalom
