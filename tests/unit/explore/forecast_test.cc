// What strategies forecast, compared with their choices.
#include <gtest/gtest.h>

#include "under_test.h"

namespace slalom {
namespace {

// A machine that follows every forecast as far as it goes, and complains if another decision comes.
class Believer : public Machine {
 public:
  Believer(Program program, uint64_t& right)
      : toy_(std::move(program), ToyMachine::SnapshotMode::Off), right_(right) {}
  Result<void> reset(const Inputs& inputs) override {
    expected_.reset();
    script_.clear();
    rule_.kind = ChoiceRule::Kind::Unknown;
    yielded_ = false;
    keep_ = 0;
    return toy_.reset(inputs);
  }
  Stop start(EventSink& sink) override { return look(toy_.start(sink)); }
  Stop resume(Decision decision) override {
    if (expected_) {
      EXPECT_EQ(decision.next.path(), expected_->path());
      EXPECT_EQ(decision.forecast.later, nullptr);
      ++right_;
    }
    if (decision.forecast.later != nullptr) believe(*decision.forecast.later);
    keep_ = std::exchange(decision.forecast, {}).keep;
    kept_among_ = those();
    return look(toy_.resume(decision));
  }
  Position position() const override { return toy_.position(); }
  std::vector<Option> blocked() const override { return toy_.blocked(); }
  uint64_t state_hash() const override { return toy_.state_hash(); }
  EndFacts ending() const override { return toy_.ending(); }
  bool hashes_cheaply() const override { return true; }
  Snapshots* snapshots() override { return nullptr; }
  const Names& names() const override { return toy_.names(); }

 private:
  void believe(const LaterChoices& later) {
    script_.assign(later.agents.rbegin(), later.agents.rend());
    rule_ = later.rule;
    rule_.uniform.option_set = those();
    priorities_.clear();
    for (uint32_t i = 0; i < rule_.known; ++i)
      priorities_[rule_.priorities[i].agent] = rule_.priorities[i].priority;
  }

  uint64_t those() const {
    uint64_t names = 0;
    for (const Option& option : options_) names = combine(names, option.agent.raw);
    return names;
  }

  // Passes the choice points at which the last decision keeps the agent, one by one.
  Stop look(Stop stop) {
    for (;;) {
      auto* point = std::get_if<ChoicePoint>(&stop);
      expected_.reset();
      if (point == nullptr) return stop;
      if (point->kind != ChoiceKind::Data) {
        options_.assign(point->options().begin(), point->options().end());
        foretell(*point);
      }
      point->uses.later = !expected_;
      if (point->kind != ChoiceKind::Running || keep_ == 0 || those() != kept_among_) return stop;
      if (expected_) {
        EXPECT_EQ(point->current.path(), expected_->path());
      }
      --keep_;
      stop = toy_.resume({point->current});
    }
  }

  void foretell(const ChoicePoint& point) {
    yielded_ = yielded_ || point.kind == ChoiceKind::Yielded;
    if (!script_.empty()) {
      expected_ = script_.back();
      script_.pop_back();
      return;
    }
    if (yielded_) return;
    const auto priority = [&](size_t i) -> int64_t& { return priorities_[options_[i].agent]; };
    switch (rule_.kind) {
      case ChoiceRule::Kind::Unknown:
        return;
      case ChoiceRule::Kind::InOrder:
        expected_ = next_in_order(point, options_).agent;
        return;
      case ChoiceRule::Kind::Uniform: {
        UniformPicks& picks = rule_.uniform;
        const bool goes_on = point.kind == ChoiceKind::Running && picks.chosen < options_.size() &&
                             options_[picks.chosen].agent == point.current;
        expected_ = options_[picks.choose(options_.size(), goes_on, those())].agent;
        return;
      }
      case ChoiceRule::Kind::Pct:
        rule_.pct.pass(point.position.raw, [&](int64_t value) { priorities_[point.current] = value; });
        expected_ = options_[rule_.pct.choose(options_.size(), priority)].agent;
        return;
      case ChoiceRule::Kind::Pos:
        expected_ = options_[rule_.pos.choose(
                                 options_.size(), priority, [&](size_t i) { return options_[i].op.kind; },
                                 [&](size_t i) { return options_[i].op.object.raw; })]
                        .agent;
        priorities_[*expected_] = kNoPriority;
        return;
    }
  }

  ToyMachine toy_;
  uint64_t& right_;
  std::optional<AgentId> expected_;
  std::vector<AgentId> script_;  // in reverse order
  ChoiceRule rule_;
  std::map<AgentId, int64_t> priorities_;
  std::vector<Option> options_;
  bool yielded_ = false;
  uint32_t keep_ = 0;
  uint64_t kept_among_ = 0;
};

TEST(Forecasts, AreWhatStrategiesChoose) {
  for (const StrategyKind& kind : all_kinds()) {
    uint64_t right = 0, points = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(kind.name + ", program " + std::to_string(seed));
      const RandomProgram random = ProgramGenerator(seed).make(12);
      const Program program = built(random.builder);
      ExploreOptions options;
      options.schedules = 150;
      options.workers = 1;
      options.inputs.max_steps = 500;
      if (kind.everywhere) options.inputs.policy.where = Where::Everywhere;
      const auto believers = [&]() -> Result<Worker> {
        Worker worker;
        worker.machine = std::make_unique<Believer>(program, right);
        worker.observer = all_detectors(worker.machine->names());
        return worker;
      };
      const auto plain = kind.make(), foreseen = kind.make();
      const Explored a = explore(toy_workers(program, ToyMachine::SnapshotMode::Off), *plain, options);
      const Explored b = explore(believers, *foreseen, options);
      expect_same(a.result, b.result);
      EXPECT_EQ(a.traces, b.traces);
      points += b.result.choice_points;
    }
    // surw chooses by what it sees, so it has no rule.
    if (kind.name == "surw") {
      EXPECT_EQ(right, 0u);
    } else {
      EXPECT_GT(right, points / 4) << kind.name;
    }
  }
}

}  // namespace
}  // namespace slalom
