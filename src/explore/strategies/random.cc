#include "explore/strategies/random.h"

namespace slalom {
namespace {

class RandomWalker : public Walker {
 public:
  explicit RandomWalker(Rng rng) : rng_(rng) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    return Decision{options[rng_.below(options.size())].agent, 0, 0};
  }

 private:
  Rng rng_;
};

}  // namespace

std::unique_ptr<Walker> Random::walker(const Task& task) const {
  return std::make_unique<RandomWalker>(Rng(options_.seed, task.index));
}

}  // namespace slalom
