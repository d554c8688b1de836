#include "explore/strategies/pos.h"

#include <algorithm>

namespace slalom {
namespace {

class PosWalker : public Walker {
 public:
  explicit PosWalker(Rng rng) : picks_{rng} {}

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    // At each passed choice point, the running agent would have got a priority.
    for (uint32_t i = 0; i < point.passed; ++i) picks_.rng.next();
    if (point.passed > 0) {
      picks_.object = point.last_passed.object.raw;
      picks_.effect = effect(point.last_passed.kind);
    }
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
    Decision decision{options[chosen].agent};
    if (point.uses.until_conflict && point.kind == ChoiceKind::Running && decision.next == point.current) {
      decision.forecast.keep = passes(options, chosen);
      decision.forecast.until_conflict = true;
    }
    return decision;
  }
  void rule(ChoiceRule& rule) const override {
    if (!put_priorities(priorities_, rule)) return;
    rule.kind = ChoiceRule::Kind::Pos;
    rule.pos = picks_;
  }

 private:
  // Returns how many choice points the chosen agent will pass if its operations conflict with no other and no
  // agent appears. Its own priorities there are already determined.
  uint32_t passes(std::span<const Option> options, size_t chosen) {
    uint64_t best = 0;
    for (size_t i = 0, at = 0; i < options.size(); ++i) {
      if (i == chosen) continue;
      const PendingOp& op = options[i].op;
      if (op.object.raw == picks_.object && conflict(effect(op.kind), picks_.effect)) return 0;
      at = priorities_.find(options[i].agent, at);
      best = std::max(best, static_cast<uint64_t>(priorities_[at]));
    }
    Rng ahead = picks_.rng;
    uint32_t passed = 0;
    while (passed < kMostAhead && (ahead.next() | 1) > best) ++passed;
    return passed;
  }

  static constexpr uint32_t kMostAhead = 32;
  PosPicks picks_;
  AgentMap<int64_t> priorities_;
};

}  // namespace

std::unique_ptr<Walker> Pos::walker(const Task& task) const {
  return std::make_unique<PosWalker>(Rng(options_.seed, task.index));
}

}  // namespace slalom
