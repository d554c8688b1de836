#include "explore/shrink/shrink.h"

#include <algorithm>

#include "base/log.h"
#include "explore/happens_before.h"
#include "explore/replay.h"
#include "explore/strategies/dfs.h"
#include "explore/strategies/dpor.h"
#include "explore/strategies/sampling.h"

namespace slalom {
namespace {

RunnerOptions shrink_runner(const Inputs& inputs) {
  RunnerOptions options;
  options.inputs = inputs;
  options.inputs.policy = ChoicePolicy{};  // every operation is a choice point: a deviation may be at any
  options.recording = Recording::Footprints;
  options.fair = false;
  options.checkpoint_every = 0;
  return options;
}

// Counts the data choices of an agent at one of its operations, as DataChoice::ordinal does.
class Ordinals {
 public:
  uint32_t next(const ChoicePoint& point) {
    const bool again = point.current == agent_ && point.current_ops == ops_;
    agent_ = point.current;
    ops_ = point.current_ops;
    return last_ = again ? last_ + 1 : 0;
  }

 private:
  AgentId agent_;
  uint64_t ops_ = 0;
  uint32_t last_ = 0;
};

}  // namespace

// Follows the default order, except where a deviation applies.
class Shrinker::Walk : public Walker {
 public:
  explicit Walk(const std::vector<Deviation>& deviations)
      : deviations_(deviations), used_(deviations.size(), false) {}

  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    const bool data = point.kind == ChoiceKind::Data;
    const uint32_t ordinal = data ? ordinals_.next(point) : 0;
    for (size_t i = 0; i < deviations_.size(); ++i) {
      const Deviation& d = deviations_[i];
      if (used_[i] || d.current != point.current || d.ops != point.current_ops || d.ordinal != ordinal ||
          data == static_cast<bool>(d.to))
        continue;
      if (data && d.value < point.arity) {
        used_[i] = true;
        return Decision{point.current, d.value};
      }
      if (!data &&
          std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.agent == d.to; })) {
        used_[i] = true;
        return Decision{d.to};
      }
    }
    if (data) return Decision{point.current};
    return Decision{next_in_order(point, options).agent};
  }

 private:
  const std::vector<Deviation>& deviations_;
  std::vector<bool> used_;
  Ordinals ordinals_;
};

uint64_t count_preemptions(const Execution& execution) {
  return static_cast<uint64_t>(std::count_if(
      execution.choices.begin(), execution.choices.end(),
      [](const ChoiceRecord& r) { return r.kind == ChoiceKind::Running && r.taken.agent != r.current; }));
}

Shrinker::Shrinker(Machine& machine, Observer& observer, Inputs inputs, ShrinkOptions options)
    : machine_(machine),
      observer_(observer),
      inputs_(std::move(inputs)),
      options_(std::move(options)),
      runner_(machine, &observer, shrink_runner(inputs_)) {}

Shrinker::Trial Shrinker::finish(Execution execution) {
  ++spent_;
  spent_steps_ += cost_of(execution);
  Trial trial;
  trial.execution = std::move(execution);
  for (const Verdict& verdict : trial.execution.verdicts)
    if (verdict.title == title_) trial.verdict = verdict;
  TRACE_LOG(Explore, "shrink try {}: {} switches, {} steps: {}", spent_,
            trial.execution.schedule.switches.size(), trial.execution.steps,
            trial.verdict ? "the same bug" : "another end");
  size_t next_data = 0;
  for (size_t i = 0; i < trial.execution.choices.size(); ++i) {
    const ChoiceRecord& record = trial.execution.choices[i];
    if (record.kind == ChoiceKind::Data) {
      const DataChoice& choice = trial.execution.schedule.data[next_data++];
      if (choice.value != 0)
        trial.deviations.push_back({choice.agent, choice.ops, choice.ordinal, {}, choice.value, false, {}});
      continue;
    }
    ChoicePoint point;
    point.kind = record.kind;
    point.current = record.current;
    const std::span<const Option> options = trial.execution.options_at(i);
    if (next_in_order(point, options).agent == record.taken.agent) continue;
    Deviation& deviation = trial.deviations.emplace_back();
    deviation.current = record.current;
    deviation.ops = record.current_ops;
    deviation.to = record.taken.agent;
    deviation.preempts = record.kind == ChoiceKind::Running;
    const auto here = std::ranges::find(options, record.current, &Option::agent);
    if (here != options.end()) deviation.pc = here->op.pc;
  }
  return trial;
}

Shrinker::Trial Shrinker::try_deviations(const std::vector<Deviation>& deviations) {
  Walk walk(deviations);
  if (!placed_) return finish(runner_.run(Task{}, walk));
  ChoicePolicy policy = placed_policy();
  for (const Deviation& deviation : deviations)
    if (deviation.to && deviation.current) policy.stops.push_back({deviation.current, deviation.ops});
  std::ranges::sort(policy.stops);
  placed_->set_policy(policy);
  return finish(placed_->run(Task{}, walk));
}

Shrinker::Trial Shrinker::repeat(const Schedule& schedule) {
  ScheduleWalker exact(schedule);
  return finish((placed_ ? place_by(schedule) : runner_).run(Task{}, exact));
}

bool Shrinker::improves(const Trial& trial) const {
  if (!trial.verdict) return false;
  const auto size = [](const Trial& t) {
    return std::tuple(t.deviations.size(), count_preemptions(t.execution),
                      t.execution.schedule.switches.size(), t.execution.positions);
  };
  return size(trial) < size(best_);
}

// Repeats the schedule, with the errors that its calls returned. Sets best_, is_long_ and placed_. Returns
// where the execution diverged; empty if it did not.
std::optional<std::string> Shrinker::take_up(const Schedule& schedule) {
  const auto run = [&](Runner& runner) {
    ScheduleWalker exact(schedule);
    runner.repeat_errors(&schedule, true);
    best_ = finish(runner.run(Task{}, exact));
    runner.repeat_errors(&schedule, false);
    return exact.divergence();
  };
  placed_.reset();
  is_long_ = false;
  std::optional<std::string> divergence;
  if (options_.long_steps != 0) {
    divergence = run(place_by(schedule));
    is_long_ = length_of(best_.execution) >= options_.long_steps;
    spent_ = spent_steps_ = 0;
    if (!is_long_) placed_.reset();
  }
  if (!is_long_) divergence = run(runner_);
  runner_.repeat_errors(&schedule, false);
  inputs_.repeated.errors =
      schedule.errors;  // other schedules repeat only the errors that no schedule changes
  return divergence;
}

Result<Shrunk> Shrinker::shrink(const Schedule& schedule, const std::string& title) {
  title_ = title;
  spent_ = spent_steps_ = 0;
  step_limit_ = options_.steps;
  const std::optional<std::string> divergence = take_up(schedule);
  if (!best_.verdict)
    return error("the schedule does not show \"{}\" when it is run again{}", title,
                 divergence ? ": " + *divergence : std::string());
  Shrunk shrunk;
  if (is_long_) {
    shrink_long(shrunk);
  } else {
    if (options_.minimum_executions > 0) try_smaller_bounds();
    reduce();
    if (!out_of_budget()) shrunk.proof = Shrunk::Proof::Minimal;
  }
  if (!placed_) {
    prove_minimum(shrunk);
    find_constraints(shrunk);
  }
  shrunk.schedule = best_.execution.schedule;
  shrunk.verdict = *best_.verdict;
  shrunk.deviations = best_.deviations.size();
  shrunk.preemptions = count_preemptions(best_.execution);
  shrunk.executions = spent_;
  return shrunk;
}

// Delta debugging over the deviations: leaves out halves first, single deviations last. After each success it
// starts again from the deviations of the execution that succeeded.
void Shrinker::reduce() {
  size_t chunk = std::max<size_t>(1, best_.deviations.size() / 2);
  while (!best_.deviations.empty() && !out_of_budget()) {
    bool better = false;
    for (size_t at = 0; at < best_.deviations.size() && !out_of_budget(); at += chunk) {
      std::vector<Deviation> fewer = best_.deviations;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                  fewer.begin() + static_cast<std::ptrdiff_t>(std::min(at + chunk, fewer.size())));
      Trial trial = try_deviations(fewer);
      if (!improves(trial)) continue;
      best_ = std::move(trial);
      better = true;
      break;
    }
    if (better)
      chunk = std::min(chunk, std::max<size_t>(1, best_.deviations.size() / 2));
    else if (chunk == 1)
      break;
    else
      chunk /= 2;
  }
}

// Returns the policy of the search. If the search could switch everywhere, returns instead the operations by
// which the agents of this execution communicate. Adds the places of the evidence in both cases.
ChoicePolicy Shrinker::near_policy() const {
  ChoicePolicy policy = inputs_.policy;
  policy.stops.clear();
  for (const Evidence& evidence : best_.verdict->evidence) policy.places.push_back(evidence.pc);
  const bool everywhere = policy.where == ChoicePolicy::Where::Everywhere;
  if (everywhere) policy.where = ChoicePolicy::Where::Sync;
  if (everywhere && !placed_) {
    HappensBefore order;
    order.build(best_.execution);
    std::vector<uint32_t> races;
    const auto add = [&](size_t transition) {
      for (const Option& option : best_.execution.options_at(order[transition].choice))
        if (option.agent == order[transition].agent) policy.places.push_back(option.op.pc);
    };
    for (size_t j = 1; j < order.size(); ++j) {
      order.races(j, HappensBefore::Ancestors::All, races);
      if (!races.empty()) add(j);
      for (const uint32_t e : races) add(e);
    }
  }
  std::ranges::sort(policy.places);
  policy.places.erase(std::unique(policy.places.begin(), policy.places.end()), policy.places.end());
  return policy;
}

// Often a schedule with few preemptions exists that leaving out single deviations never reaches. This search
// proves nothing, because it tries no switches elsewhere.
void Shrinker::try_smaller_bounds() {
  const uint64_t preemptions = count_preemptions(best_.execution);
  if (preemptions == 0) return;
  Dfs search({.limit = preemptions - 1});
  RunnerOptions fast = shrink_runner(inputs_);
  fast.inputs.policy = near_policy();
  fast.inputs.max_steps = std::min(inputs_.max_steps, 500 + 20 * best_.execution.steps);
  fast.recording = search.recording();
  fast.fair = true;
  fast.checkpoint_every = 8;
  Runner runner(machine_, &observer_, fast);
  for (uint64_t left = options_.near_executions; left > 0 && !out_of_budget(); --left) {
    const std::optional<Task> task = search.begin();
    if (!task) return;
    const Execution& execution = runner.run(*task, *search.walker(*task));
    ++spent_;
    // Steps between choice points cost little, if they are few.
    spent_steps_ += is_long_ ? cost_of(execution) : execution.choice_points;
    search.end(*task, execution);
    if (std::ranges::none_of(execution.verdicts, [&](const Verdict& v) { return v.title == title_; }))
      continue;
    Trial trial = repeat(execution.schedule);
    if (!trial.verdict || count_preemptions(trial.execution) >= preemptions) continue;
    best_ = std::move(trial);
    return;
  }
}

// Explores all schedules with fewer preemptions. If one shows the bug, it is the new best schedule. If none
// does, the minimum is proved.
void Shrinker::prove_minimum(Shrunk& shrunk) {
  uint64_t left = options_.minimum_executions, touched = 0;
  while (shrunk.proof == Shrunk::Proof::Minimal) {
    const uint64_t preemptions = count_preemptions(best_.execution);
    if (shrunk.excluded >= preemptions) {
      shrunk.proof = Shrunk::Proof::Minimum;
      return;
    }
    Dpor search({DporOptions::Mode::Bounded, static_cast<uint32_t>(preemptions - 1)});
    std::optional<Trial> better;
    const bool whole = search_through(search, left, touched, better);
    // The search raises its bound step by step, so that all bounds before the current one are complete.
    if (const std::optional<uint64_t> completed = search.coverage().completed)
      shrunk.excluded = std::max(shrunk.excluded, *completed + 1);
    if (better) {
      best_ = std::move(*better);
      reduce();
      if (out_of_budget()) shrunk.proof = Shrunk::Proof::None;
    } else if (whole) {
      shrunk.excluded = preemptions;
    } else {
      return;
    }
  }
}

// Returns false if the search did not get to its end.
bool Shrinker::search_through(Dpor& search, uint64_t& left, uint64_t& touched, std::optional<Trial>& better) {
  RunnerOptions fast = shrink_runner(inputs_);
  fast.checkpoint_every = 8;
  // Without fairness, a program that spins can go on for long. That proves nothing, so it is cut off early.
  fast.inputs.max_steps = std::min(inputs_.max_steps, 500 + 20 * best_.execution.steps);
  Runner runner(machine_, &observer_, fast);
  for (;;) {
    const std::optional<Task> task = search.begin();
    if (!task) return true;
    if (left == 0 || out_of_budget()) return false;
    --left;
    Execution execution = runner.run(*task, *search.walker(*task));
    // The memory that a search needs for an execution grows faster than the execution's length.
    touched += execution.touches.size();
    if (touched > options_.minimum_footprints || execution.touches.size() > options_.minimum_footprints / 50)
      return false;
    // An execution that was cut off or diverged may have missed the bug, so it proves nothing.
    if (execution.divergence || !ended_by_itself(execution.outcome)) return false;
    search.end(*task, execution);
    Trial trial = finish(std::move(execution));
    if (!trial.verdict) continue;
    better = std::move(trial);
    return false;
  }
}

namespace {

constexpr size_t kAncestors = 8;  // the nearest conflicting operations that are tried for each operation

// Runs agents in the given order, one transition each, and skips an agent that cannot run. Then follows the
// default order. Data choices get the given values.
class OrderWalk : public Walker {
 public:
  OrderWalk(const std::vector<AgentId>& order, const std::vector<DataChoice>& values)
      : order_(order), values_(values) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (point.kind == ChoiceKind::Data) {
      const uint32_t ordinal = ordinals_.next(point);
      for (const DataChoice& choice : values_)
        if (choice.agent == point.current && choice.ops == point.current_ops && choice.ordinal == ordinal &&
            choice.value < point.arity)
          return Decision{point.current, choice.value};
      return Decision{point.current};
    }
    while (next_ < order_.size()) {
      const AgentId agent = order_[next_++];
      if (std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.agent == agent; }))
        return Decision{agent};
    }
    return Decision{next_in_order(point, options).agent};
  }

 private:
  const std::vector<AgentId>& order_;
  const std::vector<DataChoice>& values_;
  size_t next_ = 0;
  Ordinals ordinals_;
};

// Returns whether operation `a` came before operation `b`. An operation that was never made comes last.
bool comes_first(const Execution& execution, const OperationPlace& a, const OperationPlace& b) {
  uint64_t left_a = a.ops + 1, left_b = b.ops + 1;
  for (const ChoiceRecord& record : execution.choices) {
    if (record.kind == ChoiceKind::Data) continue;
    if (record.taken.agent == a.agent && --left_a == 0) return true;
    if (record.taken.agent == b.agent && --left_b == 0) return false;
  }
  return false;
}

}  // namespace

void Shrinker::find_constraints(Shrunk& shrunk) {
  const Execution& execution = best_.execution;
  HappensBefore order;
  order.build(execution);
  const auto place = [&](size_t i) {
    OperationPlace at{order[i].agent, order[i].ordinal - 1, {}};
    const auto known =
        i < order.size() ? execution.options_at(order[i].choice) : std::span(execution.blocked);
    for (const Option& option : known)
      if (option.agent == at.agent) at.op = option.op;
    return at;
  };
  std::vector<uint32_t> races, needed;
  for (size_t j = 1; j < order.with_blocked(); ++j) {
    // The nearest one is not enough: of a load and a store before j, the load may be the one that matters.
    order.races(j, HappensBefore::Ancestors::All, races);
    if (races.size() > kAncestors) races.resize(kAncestors);
    needed.clear();
    for (uint32_t e : races) {
      if (out_of_budget()) return;
      // An operation that comes before one that is needed before j is needed, too.
      if (std::any_of(needed.begin(), needed.end(), [&](uint32_t c) { return order.before(e, c); })) continue;
      std::vector<AgentId> turned;
      for (size_t i = 0; i < e; ++i) turned.push_back(order[i].agent);
      for (size_t i = e + 1; i < std::min(j, order.size()); ++i)
        if (!order.before(e, i)) turned.push_back(order[i].agent);
      turned.push_back(order[j].agent);
      turned.push_back(order[e].agent);
      for (size_t i = e + 1; i < order.size(); ++i)
        if (i != j && (i > j || order.before(e, i))) turned.push_back(order[i].agent);
      OrderWalk walk(turned, execution.schedule.data);
      const Trial trial = finish(runner_.run(Task{}, walk));
      const Shrunk::Constraint constraint{place(e), place(j)};
      if (trial.verdict || !comes_first(trial.execution, constraint.after, constraint.before)) continue;
      shrunk.constraints.push_back(constraint);
      needed.push_back(e);
    }
  }
}

}  // namespace slalom
