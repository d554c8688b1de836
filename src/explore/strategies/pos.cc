#include "explore/strategies/pos.h"

namespace slalom {
namespace {

class PosWalker : public Walker {
 public:
  explicit PosWalker(Rng rng) : rng_(rng) {}

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, rng_);
    size_t at = 0;
    uint64_t best = 0;
    const Option* next = nullptr;
    for (const Option& option : options) {
      at = priorities_.find(option.agent, at);
      uint64_t& priority = priorities_[at++];
      if (priority == kNone || conflicts(option.op)) priority = rng_.next() | 1;
      if (priority <= best) continue;
      best = priority;
      next = &option;
    }
    executed_ = next->op;
    executed_effect_ = effect(executed_.kind);
    priorities_.at(next->agent) = kNone;  // what it does next is another operation
    return Decision{next->agent, 0, 0};
  }

 private:
  static constexpr uint64_t kNone = 0;

  bool conflicts(const PendingOp& op) const {
    return op.object == executed_.object && conflict(effect(op.kind), executed_effect_);
  }

  Rng rng_;
  AgentMap<uint64_t> priorities_;
  PendingOp executed_;
  Effect executed_effect_ = Effect::None;
};

}  // namespace

std::unique_ptr<Walker> Pos::walker(const Task& task) const {
  return std::make_unique<PosWalker>(Rng(options_.seed, task.index));
}

}  // namespace slalom
