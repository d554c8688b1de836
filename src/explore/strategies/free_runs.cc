#include "explore/strategies/free_runs.h"

namespace slalom {
namespace {

class FreeRunWalker : public Walker {
 public:
  FreeRunWalker(Rng rng, uint32_t longest_turn) : rng_(rng), longest_turn_(longest_turn) {}
  // A machine that goes on by itself asks once, at the start.
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    CHECK(point.kind == ChoiceKind::Start, "a choice in a free run, at position {}", point.position.raw);
    const AgentId first = options[rng_.below(options.size())].agent;
    Decision decision{.next = first};
    decision.forecast.keep = 1 + static_cast<uint32_t>(rng_.below(longest_turn_));
    return decision;
  }

 private:
  Rng rng_;
  uint32_t longest_turn_;
};

}  // namespace

std::unique_ptr<Walker> FreeRuns::walker(const Task& task) const {
  return std::make_unique<FreeRunWalker>(Rng(options_.seed, task.index), options_.longest_turn);
}

}  // namespace slalom
