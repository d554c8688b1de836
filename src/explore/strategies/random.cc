#include "explore/strategies/random.h"

namespace slalom {
namespace {

class RandomWalker : public Walker {
 public:
  RandomWalker(Rng rng, uint32_t stretch) : rng_(rng), stretch_(stretch) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    const AgentId next = options[rng_.below(options.size())].agent;
    return Decision{next, 0, stretch_ > 1 ? static_cast<uint32_t>(rng_.below(stretch_)) : 0};
  }

 private:
  Rng rng_;
  uint32_t stretch_;
};

}  // namespace

std::unique_ptr<Walker> Random::walker(const Task& task) const {
  return std::make_unique<RandomWalker>(Rng(options_.seed, task.index), options_.stretch);
}

}  // namespace slalom
