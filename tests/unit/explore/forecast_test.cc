// The forecasts of strategies, compared with their choices.
#include <gtest/gtest.h>

#include "under_test.h"

namespace slalom {
namespace {

// A machine that follows every forecast as far as it goes, and complains if another decision comes.
class Believer : public Machine, private Foresight {
 public:
  Believer(Program program, uint64_t& right)
      : toy_(std::move(program), ToyMachine::SnapshotMode::Off), right_(right) {}
  Result<void> reset(const Inputs& inputs) override {
    expected_.reset();
    script_.clear();
    forecast_.how = Forecast::How::Unknown;
    yielded_ = false;
    lease_ = 0;
    return toy_.reset(inputs);
  }
  Stop start(EventSink& sink) override { return look(toy_.start(sink)); }
  Stop resume(Decision decision) override {
    if (expected_) {
      EXPECT_EQ(decision.next.path(), expected_->path());
      ++right_;
    }
    lease_ = std::exchange(decision.lease, 0);
    leased_ = those();
    return look(toy_.resume(decision));
  }
  Position position() const override { return toy_.position(); }
  std::vector<Option> blocked() const override { return toy_.blocked(); }
  uint64_t state_hash() const override { return toy_.state_hash(); }
  EndFacts ending() const override { return toy_.ending(); }
  bool hashes_cheaply() const override { return true; }
  Snapshots* snapshots() override { return nullptr; }
  Foresight* foresight() override { return this; }
  const Names& names() const override { return toy_.names(); }

 private:
  bool is_at_choice_point() const override { return !expected_; }
  void foresee(std::span<const AgentId> next, const Forecast& then) override {
    script_.assign(next.rbegin(), next.rend());
    forecast_ = then;
    forecast_.uniform.option_set = those();
    priorities_.clear();
    for (uint32_t i = 0; i < then.known; ++i)
      priorities_[then.priorities[i].agent] = then.priorities[i].priority;
  }

  uint64_t those() const {
    uint64_t names = 0;
    for (const Option& option : options_) names = combine(names, option.agent.raw);
    return names;
  }

  // Skips the choice points of the last decision's lease one by one, as a forecast must.
  Stop look(Stop stop) {
    for (;;) {
      const auto* point = std::get_if<ChoicePoint>(&stop);
      expected_.reset();
      if (point == nullptr) return stop;
      if (point->kind != ChoiceKind::Data) {
        options_.assign(point->options().begin(), point->options().end());
        foretell(*point);
      }
      if (point->kind != ChoiceKind::Running || lease_ == 0 || those() != leased_) return stop;
      if (expected_) {
        EXPECT_EQ(point->current.path(), expected_->path());
      }
      --lease_;
      stop = toy_.resume({point->current, 0, 0});
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
    switch (forecast_.how) {
      case Forecast::How::Unknown:
        return;
      case Forecast::How::InOrder:
        expected_ = next_in_order(point, options_).agent;
        return;
      case Forecast::How::Uniform: {
        UniformPicks& picks = forecast_.uniform;
        const bool goes_on = point.kind == ChoiceKind::Running && picks.chosen < options_.size() &&
                             options_[picks.chosen].agent == point.current;
        expected_ = options_[picks.choose(options_.size(), goes_on, those())].agent;
        return;
      }
      case Forecast::How::Pct:
        forecast_.pct.pass(point.position.raw, [&](int64_t value) { priorities_[point.current] = value; });
        expected_ = options_[forecast_.pct.choose(options_.size(), priority)].agent;
        return;
      case Forecast::How::Pos:
        expected_ = options_[forecast_.pos.choose(
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
  Forecast forecast_;
  std::map<AgentId, int64_t> priorities_;
  std::vector<Option> options_;
  bool yielded_ = false;
  uint32_t lease_ = 0;
  uint64_t leased_ = 0;
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
    // surw chooses by what it sees, so it makes no forecast.
    if (kind.name == "surw") {
      EXPECT_EQ(right, 0u);
    } else {
      EXPECT_GT(right, points / 4) << kind.name;
    }
  }
}

}  // namespace
}  // namespace slalom
