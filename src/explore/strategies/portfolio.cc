#include "explore/strategies/portfolio.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "explore/strategies/pct.h"
#include "explore/strategies/pos.h"
#include "explore/strategies/random.h"
#include "explore/strategies/surw.h"

namespace slalom {
namespace {

constexpr uint64_t kRewardUnit = 1024;  // scaled, so that halving keeps a trace of small rewards

// Turns an arm's task into one of the portfolio.
Task wrap(Task task, uint64_t index, size_t arm) {
  task.arm = PortfolioArm{.number = arm, .index = std::exchange(task.index, index)};
  return task;
}

Task unwrap(Task task) {
  task.index = task.arm->index;
  task.arm.reset();
  return task;
}

// Keeps the arm's task as long as its walker, which may refer to it.
class ArmWalker : public Walker {
 public:
  ArmWalker(const Strategy& strategy, Task task) : task_(std::move(task)), walker_(strategy.walker(task_)) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution& so_far) override {
    return walker_->choose(point, options, so_far);
  }
  void rule(ChoiceRule& rule) const override { walker_->rule(rule); }

 private:
  Task task_;
  std::unique_ptr<Walker> walker_;
};

}  // namespace

std::vector<std::unique_ptr<Strategy>> sampling_arms(uint64_t seed, bool insists) {
  std::vector<std::unique_ptr<Strategy>> arms;
  const auto arm_seed = [&] { return combine(seed, arms.size()); };
  arms.push_back(std::make_unique<Random>(RandomOptions{arm_seed()}));
  for (uint32_t depth = 1; depth <= 3; ++depth)
    arms.push_back(std::make_unique<Pct>(PctOptions{.seed = arm_seed(), .depth = depth, .insists = insists}));
  arms.push_back(std::make_unique<Pos>(PosOptions{arm_seed()}));
  arms.push_back(std::make_unique<Surw>(SurwOptions{arm_seed()}));
  return arms;
}

Portfolio::Portfolio(std::vector<std::unique_ptr<Strategy>> arms, PortfolioOptions options)
    : options_(options) {
  CHECK(!arms.empty(), "a portfolio of nothing");
  for (auto& strategy : arms) {
    arms_.emplace_back();
    arms_.back().strategy = std::move(strategy);
    arms_.back().detour = dynamic_cast<Detour*>(arms_.back().strategy.get());
    arms_.back().finished = arms_.back().detour != nullptr;
  }
}

Recording Portfolio::recording() const {
  Recording most = Recording::Schedule;
  for (const Arm& arm : arms_) most = std::max(most, arm.strategy->recording());
  return most;
}

bool Portfolio::fair() const {
  return std::all_of(arms_.begin(), arms_.end(), [](const Arm& arm) { return arm.strategy->fair(); });
}

bool Portfolio::restarts() const {
  return std::ranges::all_of(arms_, [](const Arm& arm) { return arm.strategy->restarts(); });
}

void Portfolio::restart() {
  for (Arm& arm : arms_) {
    arm.strategy->restart();
    arm.finished = arm.detour != nullptr;
    arm.quota = 0;
  }
  exhausted_ = false;
  turn_ = 0;
}

std::optional<Task> Portfolio::begin() {
  do {
    for (size_t tried = 0; tried < arms_.size() && !exhausted_; ++tried) {
      const size_t number = turn_;
      Arm& arm = arms_[number];
      turn_ = (turn_ + 1) % arms_.size();
      if (arm.finished || arm.quota == 0) continue;
      if (std::optional<Task> task = arm.strategy->begin()) {
        --arm.quota;
        ++arm.outstanding;
        return wrap(std::move(*task), next_++, number);
      }
      if (arm.outstanding > 0) continue;
      arm.finished = true;
      const Coverage covered = arm.strategy->coverage();
      exhausted_ = covered.exhausted && covered.bound.empty();
      exhausted_by_ = number;
    }
  } while (!exhausted_ && start_epoch());
  return std::nullopt;
}

// Divides the next epoch. Returns false if a task is outstanding, or no arm is left.
bool Portfolio::start_epoch() {
  std::vector<Arm*> live;
  for (Arm& arm : arms_) {
    if (arm.outstanding > 0) return false;
    if (!arm.finished && arm.detour == nullptr) live.push_back(&arm);
  }
  if (live.empty()) return false;
  std::vector<uint64_t> rates;
  for (Arm* arm : live) {
    arm->reward = arm->reward / 2 + std::exchange(arm->new_reward, 0);
    arm->steps = arm->steps / 2 + std::exchange(arm->new_steps, 0);
    rates.push_back((arm->reward << 20) / (arm->steps + 1));
  }
  uint64_t sum = std::accumulate(rates.begin(), rates.end(), uint64_t{0});
  if (sum == 0) {
    rates.assign(live.size(), 1);
    sum = live.size();
  }
  const uint64_t epoch = std::max<uint64_t>(options_.epoch, 2 * live.size());
  const uint64_t floor = (epoch + 2 * live.size() - 1) / (2 * live.size());
  const uint64_t by_reward = epoch - std::min(epoch, floor * live.size());
  uint64_t given = 0;
  for (size_t i = 0; i < live.size(); ++i) {
    const uint64_t share = by_reward * rates[i] / sum;
    live[i]->quota = floor + share;
    given += share;
  }
  live[static_cast<size_t>(std::max_element(rates.begin(), rates.end()) - rates.begin())]->quota +=
      by_reward - given;
  for (Arm& arm : arms_) {
    if (arm.detour == nullptr) continue;
    arm.finished = !arm.detour->start_epoch();
    arm.quota = arm.finished ? 0 : epoch / 2;
  }
  return true;
}

std::unique_ptr<Walker> Portfolio::walker(const Task& task) const {
  CHECK(task.arm && task.arm->number < arms_.size(), "task {} is one of another strategy", task.index);
  return std::make_unique<ArmWalker>(*arms_[task.arm->number].strategy, unwrap(task));
}

void Portfolio::end(const Task& task, const Execution& execution) {
  Arm& arm = arms_[task.arm->number];
  --arm.outstanding;
  ++arm.executions;
  arm.new_steps += execution.positions;
  // An execution that was cut off has no class of its own. It would look new each time.
  if (ended_by_itself(execution.outcome)) {
    uint8_t& seen = classes_[execution.class_hash];
    if (seen == 0) arm.new_reward += kRewardUnit;
    seen = 1;
  }
  for (const Verdict& verdict : execution.verdicts)
    if (titles_.insert(verdict.title).second) arm.new_reward += options_.title_reward * kRewardUnit;
  for (Arm& other : arms_)
    if (other.detour != nullptr) other.detour->watch(execution, &other == &arm);
  arm.strategy->end(unwrap(task), execution);
}

// The statements of sampling arms are much alike, so the arm that knows most speaks for them. The guarantees
// of pct differ with the depth, and many are worthless.
Coverage Portfolio::coverage() const {
  if (exhausted_) return arms_[exhausted_by_].strategy->coverage();
  constexpr double kWorthSaying = 0.5;
  const auto promises = [](const Arm& arm) {
    return dynamic_cast<const Pct*>(arm.strategy.get()) != nullptr;
  };
  const auto samples = [&](const Arm& arm) {
    return dynamic_cast<const Sampler*>(arm.strategy.get()) != nullptr && !promises(arm);
  };
  const Arm* speaker = nullptr;
  for (const Arm& arm : arms_)
    if (samples(arm) && (speaker == nullptr || arm.executions > speaker->executions)) speaker = &arm;
  Coverage coverage;
  std::string shares, statements;
  for (const Arm& arm : arms_) {
    if (arm.detour != nullptr && arm.executions == 0) continue;
    const Coverage of_arm = arm.strategy->coverage();
    // What one arm has covered within a bound is covered, whatever the other arms did.
    if (coverage.bound.empty() && !of_arm.bound.empty()) {
      coverage.exhausted = of_arm.exhausted;
      coverage.bound = of_arm.bound;
      coverage.completed = of_arm.completed;
    }
    shares += fmt::format("{}{} by {}", shares.empty() ? "" : ", ", with_commas(arm.executions),
                          arm.strategy->name());
    const bool worth_saying = promises(arm) || samples(arm) ? of_arm.missed < kWorthSaying : true;
    if (of_arm.statement.empty() || !worth_saying || (samples(arm) && &arm != speaker)) continue;
    // Joins the statements. A statement that does not name its strategy gets the name in front.
    const std::string& said = of_arm.statement;
    statements +=
        fmt::format("{} {}{}", statements.empty() || statements.back() != '.' ? "." : "",
                    said.starts_with(arm.strategy->name()) ? "" : arm.strategy->name() + ": ", said);
  }
  coverage.statement = fmt::format(
      "portfolio: {} different {} in {} executions, {}{}", with_commas(classes_.size()),
      classes_.size() == 1 ? "interleaving" : "interleavings", with_commas(next_), shares, statements);
  return coverage;
}

void Portfolio::save(ByteWriter& out) const {
  out.u64(arms_.size());
  for (const Arm& arm : arms_) {
    out.text(arm.strategy->name());
    out.u8(arm.finished);
    for (uint64_t value : {arm.quota, arm.executions, arm.reward, arm.steps, arm.new_reward, arm.new_steps})
      out.u64(value);
    arm.strategy->save(out);
  }
  for (uint64_t value : {uint64_t{turn_}, next_, uint64_t{exhausted_}, uint64_t{exhausted_by_}})
    out.u64(value);
  std::vector<uint64_t> classes;
  classes_.for_each([&](uint64_t hash, uint8_t) { classes.push_back(hash); });
  std::sort(classes.begin(), classes.end());
  out.u64(classes.size());
  for (uint64_t hash : classes) out.fixed64(hash);
  out.u64(titles_.size());
  for (const std::string& title : titles_) out.text(title);
}

bool Portfolio::load(ByteReader& in) {
  if (in.u64() != arms_.size()) return false;
  for (Arm& arm : arms_) {
    if (in.text() != arm.strategy->name()) return false;
    arm.finished = in.u8() != 0;
    arm.outstanding = 0;
    for (uint64_t* value :
         {&arm.quota, &arm.executions, &arm.reward, &arm.steps, &arm.new_reward, &arm.new_steps})
      *value = in.u64();
    if (!arm.strategy->load(in)) return false;
  }
  turn_ = in.u64();
  next_ = in.u64();
  exhausted_ = in.u64() != 0;
  exhausted_by_ = in.u64();
  if (turn_ >= arms_.size() || exhausted_by_ >= arms_.size()) return false;
  classes_.clear();
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) classes_[in.fixed64()] = 1;
  titles_.clear();
  for (uint64_t left = in.count(); left > 0 && in.ok(); --left) titles_.insert(in.text());
  return in.ok();
}

}  // namespace slalom
