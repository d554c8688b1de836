#include "explore/runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace slalom {
namespace {

// Each checkpoint can hold megabytes.
constexpr size_t kMostCheckpoints = 128;

constexpr size_t kMostLaterAgents = 512;

// `recorded` is the prefix's decision at this choice point; nullptr if the prefix ends before it.
void log_divergence(const Task& task, const Execution& execution, const ChoicePoint& point,
                    std::span<const Option> allowed, const Pick* recorded) {
  std::string able;
  for (const Option& option : allowed) able += " " + option.agent.path();
  const std::string wanted =
      recorded == nullptr ? fmt::format("the prefix's end, digest {:#x}", task.digest)
      : recorded->data    ? fmt::format("value {}, digest {:#x}", recorded->value, recorded->digest)
                          : fmt::format("agent {}, digest {:#x}", recorded->agent.path(), recorded->digest);
  const Divergence& first = *execution.divergence;
  DEBUG_LOG(Explore,
            "execution {}, attempt {}: first difference at choice {}, step {}: {}: recorded {}; here digest "
            "{:#x}, agent "
            "{} after {} operations, able to run:{}",
            task.index, execution.attempts, first.choice, first.position.raw, first.what, wanted,
            point.digest, point.current.path(), point.current_ops, able);
}

}  // namespace

class Runner::Fan : public EventSink {
 public:
  explicit Fan(Runner& runner) : runner_(runner), records_(runner.options_.inputs.control != Control::None) {}
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override {
    if (records_) runner_.recorder_.on_accesses(accesses, header);
    if (runner_.observer_ != nullptr) runner_.observer_->on_accesses(accesses, header);
    if (runner_.learner_ != nullptr) runner_.learner_->on_accesses(accesses, header);
    if (runner_.extra_ != nullptr) runner_.extra_->on_accesses(accesses, header);
  }
  void on_event(const Event& event) override {
    if (records_) runner_.recorder_.on_event(event);
    if (runner_.observer_ != nullptr) runner_.observer_->on_event(event);
    if (runner_.learner_ != nullptr) runner_.learner_->on_event(event);
    if (runner_.extra_ != nullptr) runner_.extra_->on_event(event);
  }
  void begin() {
    ended_ = false;
    if (runner_.learner_ != nullptr) runner_.learner_->reset();
  }
  // Emits one end per execution, the first: machines report their own ends, and the runner those that it
  // causes.
  void on_end(const Outcome& outcome) override {
    if (std::exchange(ended_, true)) return;
    if (runner_.observer_ != nullptr) runner_.observer_->on_end(outcome);
    if (runner_.learner_ != nullptr) runner_.learner_->on_end(outcome);
    if (runner_.extra_ != nullptr) runner_.extra_->on_end(outcome);
  }

 private:
  Runner& runner_;
  const bool records_;  // nothing depends on the order of operations in an execution without control
  bool ended_ = false;
};

Runner::Runner(Machine& machine, Observer* observer, RunnerOptions options, Learner* learner)
    : machine_(machine),
      observer_(observer),
      learner_(learner),
      options_(std::move(options)),
      snapshots_(options_.checkpoint_every > 0 && records_choices() && learner == nullptr
                     ? machine.snapshots()
                     : nullptr),
      fan_(std::make_unique<Fan>(*this)),
      fairness_(options_.insist) {
  options_.inputs.reporting.at_end = !records_choices();
}

Runner::~Runner() {
  drop_checkpoints(0);
}

void Runner::set_policy(const ChoicePolicy& policy) {
  drop_checkpoints(0);
  options_.inputs.policy = policy;
}

void Runner::repeat_errors(const Schedule* schedule, bool same) {
  options_.inputs.repeated = {schedule != nullptr ? schedule->errors : std::nullopt, same};
}

const Execution& Runner::run(const Task& task, Walker& walker) {
  log_.attempts = 0;
  for (;;) {
    ++log_.attempts;
    try {
      if (attempt(task, walker, log_.attempts >= options_.attempts)) break;
    } catch (const InternalError& failure) {
      // A developer needs the schedule first.
      std::string switches;
      for (const Switch& s : log_.schedule.switches)
        switches += fmt::format(" {}@{}->{}", s.from.path(), s.from_ops, s.to.path());
      throw InternalError(fmt::format("{}\n  schedule so far:{}", failure.what(), switches));
    }
  }
  return log_;
}

std::optional<Stop> Runner::from_checkpoint(const Task& task) {
  if (snapshots_ == nullptr || extra_ != nullptr || log_.attempts > 1) {
    drop_checkpoints(0);
    return std::nullopt;
  }
  const size_t limit = std::min(task.prefix.size(), log_.choices.size());
  size_t common = 0;
  while (common < limit && log_.choices[common].taken.agent == task.prefix[common].agent &&
         log_.choices[common].taken.value == task.prefix[common].value &&
         log_.choices[common].taken.data == task.prefix[common].data &&
         (task.prefix[common].digest == 0 || log_.choices[common].taken.digest == task.prefix[common].digest))
    ++common;
  size_t keep = checkpoints_.size();
  while (keep > 0 && checkpoints_[keep - 1].choices > common) --keep;
  drop_checkpoints(keep);
  if (keep == 0) return std::nullopt;

  const Checkpoint& from = checkpoints_.back();
  log_.choices.resize(from.choices);
  log_.options.resize(from.options);
  log_.touches.resize(from.touches);
  log_.schedule.switches.resize(from.switches);
  log_.schedule.data.resize(from.data);
  log_.choice_points = from.choice_points;
  log_.agent_ops = from.agent_ops;
  recorder_.restore(from.history);
  fairness_ = from.fairness;
  if (observer_ != nullptr) observer_->restore(*from.observer);
  return snapshots_->restore(from.snapshot);
}

Stop Runner::from_start() {
  log_.choices.clear();
  log_.options.clear();
  log_.touches.clear();
  log_.schedule.switches.clear();
  log_.schedule.data.clear();
  log_.agent_ops.clear();
  log_.choice_points = 0;
  recorder_.begin(log_, options_.recording == Recording::Footprints);
  fairness_.clear();
  if (observer_ != nullptr) observer_->reset();
  if (Result<void> reset = machine_.reset(options_.inputs); !reset.ok())
    return Outcome(ToolError{reset.error().message});
  return machine_.start(*fan_);
}

void Runner::drop_checkpoints(size_t keep) {
  while (checkpoints_.size() > keep) {
    snapshots_->drop(checkpoints_.back().snapshot);
    checkpoints_.pop_back();
  }
}

// Searches go back from the end, so the earlier half gets sparser. An execution that goes back there executes
// a little more, and takes new checkpoints.
void Runner::thin_out_checkpoints() {
  std::vector<Checkpoint> kept;
  for (size_t i = 0; i < checkpoints_.size(); ++i) {
    if (i < checkpoints_.size() / 2 && i % 2 == 1)
      snapshots_->drop(checkpoints_[i].snapshot);
    else
      kept.push_back(std::move(checkpoints_[i]));
  }
  checkpoints_ = std::move(kept);
}

void Runner::take_checkpoint() {
  if (checkpoints_.size() >= kMostCheckpoints) thin_out_checkpoints();
  Checkpoint& to = checkpoints_.emplace_back();
  to.snapshot = snapshots_->take();
  to.choices = log_.choices.size();
  to.options = log_.options.size();
  to.touches = log_.touches.size();
  to.switches = log_.schedule.switches.size();
  to.data = log_.schedule.data.size();
  to.choice_points = log_.choice_points;
  to.history = recorder_.history();
  to.fairness = fairness_;
  to.agent_ops = log_.agent_ops;
  if (observer_ != nullptr) to.observer = observer_->save();
}

void Runner::note(const ChoicePoint& point, const Pick& pick) {
  if (pick.data) {
    uint32_t ordinal = 0;
    if (!log_.schedule.data.empty()) {
      const DataChoice& last = log_.schedule.data.back();
      if (last.agent == point.current && last.ops == point.current_ops) ordinal = last.ordinal + 1;
    }
    log_.schedule.data.push_back({point.current, point.current_ops, ordinal, pick.value});
    recorder_.on_value(point.current, pick.value);
  } else if (pick.agent != point.current) {
    log_.schedule.switches.push_back({point.current, point.current_ops, pick.agent});
  }
}

// Returns the choices after the decision at this position: the rest of the prefix, then the walker's rule.
const LaterChoices* Runner::later_choices(const Task& task, const Walker& walker, size_t position) {
  rest_of_prefix_.clear();
  size_t next = position + 1;
  while (next < task.prefix.size() && !task.prefix[next].data && rest_of_prefix_.size() < kMostLaterAgents)
    rest_of_prefix_.push_back(task.prefix[next++].agent);
  later_.agents = rest_of_prefix_;
  later_.rule.kind = ChoiceRule::Kind::Unknown;
  if (next >= task.prefix.size() && !fairness_.restricts()) walker.rule(later_.rule);
  return &later_;
}

// Returns the decision; empty if the execution ends here, because the prefix diverged and another attempt
// follows, or because the walker wants no more of this execution.
std::optional<Decision> Runner::decide(const ChoicePoint& point, Attempt& now) {
  const size_t made = log_.choices.size();
  const size_t position = records_choices() ? made : log_.choice_points;
  const bool data = point.kind == ChoiceKind::Data;
  const bool replaying = position < now.task.prefix.size() && !now.diverged;
  if (snapshots_ != nullptr && extra_ == nullptr && made % options_.checkpoint_every == 0 &&
      (checkpoints_.empty() || checkpoints_.back().choices < made))
    take_checkpoint();

  std::span<const Option> allowed;
  if (!data) {
    if (point.current) {
      auto at = std::lower_bound(log_.agent_ops.begin(), log_.agent_ops.end(),
                                 std::pair(point.current, uint64_t{0}));
      if (at != log_.agent_ops.end() && at->first == point.current)
        at->second = point.current_ops;
      else
        log_.agent_ops.insert(at, {point.current, point.current_ops});
    }
    allowed = point.options();
    if (now.fair && fairness_.concerns(point)) {
      allowed_.assign(allowed.begin(), allowed.end());
      fairness_.filter(point, allowed_);
      allowed = allowed_;
    }
    CHECK(!allowed.empty(), "a choice point without options at position {}", point.position.raw);
  }

  const auto differs = [&](const char* what) {
    now.diverged = true;
    log_.divergence = Divergence{position, point.position, what};
    if (is_logged(LogFolder::Explore, LogLevel::Debug))
      log_divergence(now.task, log_, point, allowed, replaying ? &now.task.prefix[position] : nullptr);
  };
  Pick pick;
  if (replaying) {
    pick = now.task.prefix[position];
    const bool known = data ? pick.value < point.arity
                            : std::any_of(allowed.begin(), allowed.end(),
                                          [&](const Option& option) { return option.agent == pick.agent; });
    if (pick.data != data)
      differs("another kind of choice than before");
    else if (!known)
      differs("the recorded agent cannot run here");
    else if (pick.digest != 0 && pick.digest != point.digest)
      differs("another state than the one recorded");
  } else if (position == now.task.prefix.size() && now.task.digest != 0 && now.task.digest != point.digest &&
             !now.diverged) {
    differs("another state than the one recorded");
  }
  if (now.diverged && !now.last) return std::nullopt;
  if (records_choices()) {
    log_.choices.push_back({point.kind,
                            point.current,
                            point.current_ops,
                            point.arity,
                            {},
                            combine(recorder_.history().sum, fairness_.hash()),
                            static_cast<uint32_t>(log_.options.size()),
                            static_cast<uint32_t>(log_.touches.size())});
    log_.options.insert(log_.options.end(), allowed.begin(), allowed.end());
  }
  Decision decision;
  if (replaying && !now.diverged) {
    decision = {pick.data ? point.current : pick.agent, pick.value, {}};
  } else if (now.diverged) {
    // The recorded decisions mean nothing from here on. Run to the end in the default order.
    decision = Decision{data ? point.current : next_in_order(point, allowed).agent};
  } else {
    auto chosen = now.walker.choose(point, allowed, log_);
    if (const auto* abandoned = std::get_if<Abandoned>(&chosen)) {
      if (records_choices()) {
        log_.options.resize(log_.choices.back().first_option);
        log_.choices.pop_back();
      }
      log_.outcome = *abandoned;
      return std::nullopt;
    }
    decision = std::get<Decision>(chosen);
    // The next choice point may allow an agent that fairness holds back now.
    if (decision.forecast.until_conflict && allowed.size() != point.options().size())
      decision.forecast.keep = 0;
  }
  pick = {decision.next, decision.value, data, point.digest};
  if (records_choices()) {
    log_.choices.back().taken = pick;
    decision.forecast.keep = 0;  // every choice point must be recorded
  }
  ++log_.choice_points;
  note(point, pick);
  if (point.uses.later && !now.diverged)
    decision.forecast.later = later_choices(now.task, now.walker, position);
  return decision;
}

// Returns false if the prefix diverged and another attempt is due.
bool Runner::attempt(const Task& task, Walker& walker, bool last_attempt) {
  log_.verdicts.clear();
  log_.divergence.reset();
  Attempt now{task, walker, last_attempt, options_.fair && walker.fair()};
  fan_->begin();
  std::optional<Stop> resumed = from_checkpoint(task);
  const uint64_t positions_before = resumed ? machine_.position().raw : 0;
  std::optional<Decision> decision;
  const auto goes_on = [&](Stop stop) {
    if (const auto* point = std::get_if<ChoicePoint>(&stop)) {
      decision = decide(*point, now);
      return decision.has_value();
    }
    log_.outcome = std::get<Outcome>(std::move(stop));
    return false;
  };
  bool going = goes_on(resumed ? std::move(*resumed) : from_start());
  while (going) going = goes_on(machine_.resume(*decision));
  if (now.diverged && !last_attempt) return false;
  if (!now.diverged && log_.choice_points < task.prefix.size() &&
      !std::holds_alternative<ToolError>(log_.outcome)) {
    DEBUG_LOG(Explore, "execution {}, attempt {}: ended after {} of the prefix's {} choices", task.index,
              log_.attempts, log_.choice_points, task.prefix.size());
    if (!last_attempt) return false;
    log_.divergence = Divergence{log_.choice_points, machine_.position(), "an earlier end than before"};
  }
  fan_->on_end(log_.outcome);

  const EndFacts ending = machine_.ending();
  log_.steps = ending.steps.raw;
  log_.set_up_steps = ending.set_up_steps;
  log_.positions = ending.positions.raw;
  log_.positions_run = log_.positions - positions_before;
  log_.class_hash = recorder_.history().sum;
  log_.schedule.digest = ending.digest != 0 ? ending.digest : log_.class_hash;
  log_.schedule.errors = ending.errors != nullptr ? std::optional(*ending.errors) : std::nullopt;
  log_.withheld = fairness_.has_withheld();
  log_.state_hash = options_.hash_states || machine_.hashes_cheaply() ? machine_.state_hash() : 0;
  log_.blocked.clear();
  if (options_.recording == Recording::Footprints) {
    log_.blocked = machine_.blocked();
    if (const auto* fault = std::get_if<Faulted>(&log_.outcome))
      std::erase_if(log_.blocked, [&](const Option& option) { return option.agent == fault->agent; });
  }
  if (!log_.schedule.switches.empty()) {
    // No switch away from the last agent was recorded. It did every operation that the other agents did not.
    const AgentId last = log_.schedule.switches.back().to;
    uint64_t others = 0;
    for (const auto& [agent, ops] : log_.agent_ops)
      if (agent != last) others += ops;
    auto at = std::lower_bound(log_.agent_ops.begin(), log_.agent_ops.end(), std::pair(last, uint64_t{0}));
    if (at == log_.agent_ops.end() || at->first != last) at = log_.agent_ops.insert(at, {last, 0});
    if (log_.steps > others) at->second = log_.steps - others;
  }
  if (observer_ != nullptr) observer_->harvest(log_.verdicts);
  collect_knowledge(ending);
  return true;
}

// How much of an execution runs before it is given up can depend on the time, so it teaches nothing.
void Runner::collect_knowledge(const EndFacts& ending) {
  if (ending.knowledge != nullptr)
    log_.knowledge = *ending.knowledge;
  else
    log_.knowledge.clear();
  if (learner_ != nullptr && !std::holds_alternative<Abandoned>(log_.outcome))
    log_.knowledge.merge(learner_->knowledge());
  for (const Verdict& verdict : log_.verdicts) log_.knowledge.add_race(verdict);
}

const Option& next_in_order(const ChoicePoint& point, std::span<const Option> options) {
  const Option* after = nullptr;
  for (const Option& option : options) {
    if (option.agent == point.current && point.kind == ChoiceKind::Running) return option;
    if (after == nullptr && option.agent > point.current) after = &option;
  }
  return after != nullptr ? *after : options.front();
}

}  // namespace slalom
