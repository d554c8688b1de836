#include "explore/strategies/random.h"

namespace slalom {
namespace {

class RandomWalker : public Walker {
 public:
  RandomWalker(Rng rng, uint32_t stretch) : picks_{rng}, stretch_(stretch) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override {
    if (point.kind == ChoiceKind::Data) {
      picks_.left = 0;
      return random_value(point, picks_.rng);
    }
    if (stretch_ > 1 && options.size() > 1)
      return Decision{.next = options[picks_.rng.below(options.size())].agent,
                      .forecast = {.keep = static_cast<uint32_t>(picks_.rng.below(stretch_))}};
    // If choice points are recorded, the walker is asked at each of them. Otherwise the machine has passed
    // the drawn ones.
    uint64_t those = 0;
    if (so_far.choices.empty())
      picks_.left = 0;
    else
      for (const Option& option : options) those = combine(those, option.agent.raw);
    const bool goes_on = point.kind == ChoiceKind::Running && picks_.chosen < options.size() &&
                         options[picks_.chosen].agent == point.current;
    const size_t chosen = picks_.choose(options.size(), goes_on, those);
    return Decision{.next = options[chosen].agent, .forecast = {.keep = picks_.left}};
  }
  void rule(ChoiceRule& rule) const override {
    if (stretch_ > 1) return;
    rule.kind = ChoiceRule::Kind::Uniform;
    rule.uniform = picks_;
  }

 private:
  UniformPicks picks_;
  uint32_t stretch_;
};

}  // namespace

std::unique_ptr<Walker> Random::walker(const Task& task) const {
  return std::make_unique<RandomWalker>(Rng(options_.seed, task.index), options_.stretch);
}

}  // namespace slalom
