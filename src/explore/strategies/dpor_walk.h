// DporWalk: one execution of dpor. It takes the transition of a leaf of the wakeup tree, then goes on in the
// default order among those who do not sleep. Not for what is learned from it: that is Dpor's.
#pragma once

#include <vector>

#include "explore/strategy.h"

namespace slalom {

class DporWalk : public Walker {
 public:
  static constexpr const char* kElsewhere = "explored elsewhere";  // why it was abandoned: not needed

  explicit DporWalk(const Task& task)
      : sleepers_(task.sleepers), leaf_(task.parameters), foreseen_(task.number != 0) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override;

 private:
  bool sleeps(AgentId agent) const;
  void wake(const Execution& so_far);

  std::vector<Sleeper> sleepers_;
  std::vector<uint64_t> leaf_;  // its agent and data values; empty for the root
  bool foreseen_;               // if the leaf does not wake all it should, it is not needed
  size_t transitions_ = 0;
  size_t values_ = 0;
  size_t first_choice_ = 0;
  std::vector<Option> awake_;
};

}  // namespace slalom
