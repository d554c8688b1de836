#include "explore/strategies/random.h"

#include <limits>

namespace slalom {
namespace {

class RandomWalker : public Walker {
 public:
  RandomWalker(Rng rng, uint32_t stretch) : rng_(rng), stretch_(stretch) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    if (options.size() == 1) {
      drawn_among_ = 0;
      return Decision{options[0].agent, 0, kLongest};
    }
    if (stretch_ > 1)
      return Decision{options[rng_.below(options.size())].agent, 0,
                      static_cast<uint32_t>(rng_.below(stretch_))};
    // What would be drawn at the next choice points is drawn now, up to another agent, so that the machine
    // can pass the points between unasked. It holds as long as the same agents can run.
    const bool holds = point.kind == ChoiceKind::Running && options.size() == drawn_among_ &&
                       options[drawn_before_].agent == point.current;
    const size_t chosen = holds ? drawn_ : rng_.below(options.size());
    uint32_t lease = 0;
    drawn_before_ = chosen;
    drawn_among_ = options.size();
    while ((drawn_ = rng_.below(options.size())) == chosen) ++lease;
    return Decision{options[chosen].agent, 0, lease};
  }

 private:
  static constexpr uint32_t kLongest = std::numeric_limits<uint32_t>::max();

  Rng rng_;
  uint32_t stretch_;
  // At the end of the lease: the agent that runs, who is next, and among how many, as indexes of the options.
  size_t drawn_before_ = 0, drawn_ = 0, drawn_among_ = 0;
};

}  // namespace

std::unique_ptr<Walker> Random::walker(const Task& task) const {
  return std::make_unique<RandomWalker>(Rng(options_.seed, task.index), options_.stretch);
}

}  // namespace slalom
