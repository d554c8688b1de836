#include "explore/strategies/pos.h"

namespace slalom {
namespace {

class PosWalker : public Walker {
 public:
  explicit PosWalker(Rng rng) : picks_{rng} {}

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, picks_.rng);
    size_t at = 0;
    const size_t chosen = picks_.choose(
        options.size(),
        [&](size_t i) -> int64_t& {
          at = priorities_.find(options[i].agent, at);
          return priorities_[at];
        },
        [&](size_t i) { return options[i].op.kind; }, [&](size_t i) { return options[i].op.object.raw; });
    priorities_.at(options[chosen].agent) = kNoPriority;
    return Decision{options[chosen].agent, 0, 0};
  }
  void forecast(Forecast& forecast) const override {
    if (!put_priorities(priorities_, forecast)) return;
    forecast.how = Forecast::How::Pos;
    forecast.pos = picks_;
  }

 private:
  PosPicks picks_;
  AgentMap<int64_t> priorities_;
};

}  // namespace

std::unique_ptr<Walker> Pos::walker(const Task& task) const {
  return std::make_unique<PosWalker>(Rng(options_.seed, task.index));
}

}  // namespace slalom
