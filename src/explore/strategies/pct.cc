#include "explore/strategies/pct.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace slalom {
namespace {

class PctWalker : public Walker {
 public:
  PctWalker(Rng rng, uint32_t depth, const PctHint& hint, bool insists)
      : picks_{rng}, keeps_(hint.keeps), insists_(insists) {
    if (hint.k == 0) return;
    for (uint32_t value = 1; value < depth; ++value)
      picks_.changes[picks_.count++] = {1 + picks_.rng.below(hint.k), value};
    std::sort(picks_.changes, picks_.changes + picks_.count);
  }

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) return random_value(point, picks_.rng);
    picks_.pass(point.position.raw, [&](int64_t value) {
      if (point.current) priorities_.at(point.current) = value;
    });
    yielded_ = yielded_ || point.kind == ChoiceKind::Yielded;
    if (point.kind == ChoiceKind::Yielded && (!insists_ || is_withheld(point.current, options)))
      priorities_.at(point.current) = --lowest_;
    size_t at = 0;
    const size_t chosen = picks_.choose(options.size(), [&](size_t i) -> int64_t& {
      at = priorities_.find(options[i].agent, at);
      return priorities_[at];
    });
    return Decision{.next = options[chosen].agent, .forecast = {.keep = keep(point)}};
  }
  void rule(ChoiceRule& rule) const override {
    if (!put_priorities(priorities_, rule)) return;
    rule.kind = ChoiceRule::Kind::Pct;
    rule.pct = picks_;
  }

 private:
  // Returns whether fairness withholds the agent. An agent insists only as long as fairness lets it.
  static bool is_withheld(AgentId agent, std::span<const Option> options) {
    return std::ranges::none_of(options, [&](const Option& option) { return option.agent == agent; });
  }

  // Returns how long the chosen agent stays the highest: until a priority or the set of enabled agents
  // changes. Fairness may give agents back meanwhile, but only agents that yielded to others and have lower
  // priorities. Fairness must see an insisting agent at each choice point to hold it to its loop.
  uint32_t keep(const ChoicePoint& point) const {
    constexpr uint64_t kLongest = std::numeric_limits<uint32_t>::max();
    if (!keeps_ || (insists_ && yielded_)) return 0;
    if (!picks_.changes_left()) return kLongest;
    return static_cast<uint32_t>(
        std::min(picks_.changes[picks_.passed].step - point.position.raw - 1, kLongest));
  }

  PctPicks picks_;
  bool keeps_;
  bool insists_;
  bool yielded_ = false;  // an agent has yielded
  AgentMap<int64_t> priorities_;
  int64_t lowest_ = 0;
};

}  // namespace

Pct::Pct(PctOptions options) : options_(options) {
  CHECK(options_.depth >= 1 && options_.depth <= kMostDepth, "a depth of {}", options_.depth);
}

void Pct::start_epoch() {
  keeps_ = measured_ >= kEpoch && every_step_;
  const uint64_t k = options_.k != 0 ? options_.k : max_steps_;
  if (k != k_) counted_ = 0;
  k_ = k;
}

void Pct::prepare(Task& task) const {
  task.hint = PctHint{k_, keeps_};
}

std::unique_ptr<Walker> Pct::walker(const Task& task) const {
  // A separate draw, so that the choices before the first yield do not depend on it.
  const bool insists =
      options_.insists && Rng(combine(options_.seed, hash_text("insists")), task.index).below(2) != 0;
  return std::make_unique<PctWalker>(Rng(options_.seed, task.index), options_.depth, hint_of<PctHint>(task),
                                     insists);
}

void Pct::learn(const Task& task, const Execution& execution) {
  if (execution.divergence || std::holds_alternative<ToolError>(execution.outcome)) return;
  max_steps_ = std::max(max_steps_, execution.positions);
  max_agents_ = std::max<uint64_t>(max_agents_, execution.agent_ops.size());
  if (!hint_of<PctHint>(task).keeps) {
    ++measured_;
    every_step_ =
        every_step_ && execution.choice_points - execution.schedule.data.size() >= execution.positions;
  }
  if (k_ != 0) ++counted_;
}

Coverage Pct::coverage() const {
  Coverage coverage;
  const uint64_t n = std::max(options_.n, max_agents_);
  if (counted_ == 0 || n == 0) {
    coverage.statement = fmt::format("{}: too few executions to say anything.", name());
    return coverage;
  }
  const double hit = 1 / (static_cast<double>(n) * std::pow(static_cast<double>(k_), options_.depth - 1));
  const double missed =
      hit >= 1 ? 0 : std::max(1e-9, std::exp(static_cast<double>(counted_) * std::log1p(-hit)));
  coverage.missed = missed;
  coverage.statement = fmt::format(
      "{}: {} executions; a bug of depth {}{} that needs at most {} agents and {} steps was missed with "
      "probability at most "
      "{}. Deeper bugs are not covered.",
      name(), with_commas(counted_), options_.depth, options_.depth > 1 ? " or less" : "", with_commas(n),
      with_commas(k_), percent(missed));
  return coverage;
}

void Pct::save(ByteWriter& out) const {
  Sampler::save(out);
  for (uint64_t value :
       {k_, uint64_t{keeps_}, max_steps_, max_agents_, measured_, uint64_t{every_step_}, counted_})
    out.u64(value);
}

bool Pct::load(ByteReader& in) {
  if (!Sampler::load(in)) return false;
  k_ = in.u64();
  keeps_ = in.u64() != 0;
  max_steps_ = in.u64();
  max_agents_ = in.u64();
  measured_ = in.u64();
  every_step_ = in.u64() != 0;
  counted_ = in.u64();
  return in.ok();
}

}  // namespace slalom
