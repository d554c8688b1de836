#include "explore/strategies/serial.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace slalom {

// Says at each choice point whether the order may branch there, and among which agents. It depends on earlier
// choice points of the execution alone, so the walker and end() find the same branches.
class Serial::Rule {
 public:
  explicit Rule(const SerialOptions& options) : options_(options) {}

  // Returns the number of agents that may go on; 0 if the order does not branch here. The caller takes one of
  // them then.
  size_t branches(ChoiceKind kind, AgentId current, std::span<const Option> options) {
    agents_.clear();
    options_here_ = options;
    AgentId interrupt;
    for (const Option& option : options) {
      if (option.op.kind != OpKind::IrqEnter) {
        agents_.push_back(option.agent);
        continue;
      }
      interrupts_.insert(option.agent);
      if (std::ranges::binary_search(options_.working_interrupts, option.agent))
        agents_.push_back(option.agent);
      else
        interrupt = option.agent;
    }
    if (kind == ChoiceKind::Data || interrupt) {
      next_ = interrupt ? interrupt : current;
      return 0;
    }
    // An agent that was just chosen to start goes on to its first call, since it has done nothing before
    // that. An agent that started because it was the only one may now have alternatives.
    const bool at_call = kind == ChoiceKind::Running && stands_at_call(current);
    if (at_call && begun_.insert(current).second && taken_ == current) {
      next_ = current;
      return 0;
    }
    const bool was_interrupt = interrupts_.contains(current);
    const bool between = kind == ChoiceKind::Start || (kind == ChoiceKind::Ended && !was_interrupt) ||
                         kind == ChoiceKind::Blocked || at_call;
    if (between && agents_.size() > 1) return agents_.size();
    // The running agent goes on, also after an interrupt, unless it seems to wait for another one.
    const bool returned = kind == ChoiceKind::Ended && was_interrupt;
    const AgentId running = returned ? current.parent() : current;
    const bool goes_on =
        (returned || kind == ChoiceKind::Running) && std::ranges::find(agents_, running) != agents_.end();
    next_ = goes_on                                            ? running
            : agents_.size() > 1 && agents_.front() == current ? agents_[1]
                                                               : agents_.front();
    return 0;
  }
  void take(size_t branch) {
    next_ = taken_ = agents_[branch];
    if (stands_at_call(taken_)) begun_.insert(taken_);
  }
  AgentId next() const { return next_; }

 private:
  bool stands_at_call(AgentId agent) const {
    const auto at = std::ranges::find(options_here_, agent, &Option::agent);
    return at != options_here_.end() && std::ranges::find(options_.calls, at->op.pc) != options_.calls.end();
  }

  const SerialOptions& options_;
  std::span<const Option> options_here_;  // of the last choice point
  std::set<AgentId> interrupts_;          // that could arrive so far
  std::set<AgentId> begun_;               // agents that have stood at a call
  AgentId taken_;                         // at the last branch
  AgentId next_;
  std::vector<AgentId> agents_;
};

class Serial::Walk : public Walker {
 public:
  Walk(const SerialOptions& options, std::vector<uint64_t> path) : rule_(options), path_(std::move(path)) {}
  std::variant<Decision, Abandoned> choose(const ChoicePoint& point, std::span<const Option> options,
                                           const Execution&) override {
    if (rule_.branches(point.kind, point.current, options) > 0) {
      rule_.take(depth_ < path_.size() ? path_[depth_] : 0);
      ++depth_;
    }
    return Decision{.next = rule_.next()};
  }

 private:
  Rule rule_;
  std::vector<uint64_t> path_;
  size_t depth_ = 0;
};

std::optional<Task> Serial::begin() {
  if (outstanding_ || exhausted_ || orders_ >= options_.most_orders || steps_ >= options_.most_steps)
    return std::nullopt;
  outstanding_ = true;
  Task task;
  task.index = orders_;
  task.hint = SerialHint{path_};
  return task;
}

std::unique_ptr<Walker> Serial::walker(const Task& task) const {
  return std::make_unique<Walk>(options_, hint_of<SerialHint>(task).branches);
}

void Serial::end(const Task& task, const Execution& execution) {
  outstanding_ = false;
  ++orders_;
  steps_ += execution.steps;
  Rule rule(options_);
  const std::vector<uint64_t>& path = hint_of<SerialHint>(task).branches;
  std::vector<uint64_t> taken, branches;
  for (size_t i = 0; i < execution.choices.size(); ++i) {
    const ChoiceRecord& choice = execution.choices[i];
    const size_t here = rule.branches(choice.kind, choice.current, execution.options_at(i));
    if (here == 0) continue;
    taken.push_back(taken.size() < path.size() ? path[taken.size()] : 0);
    branches.push_back(here);
    rule.take(taken.back());
  }
  while (!taken.empty() && taken.back() + 1 == branches[taken.size() - 1]) taken.pop_back();
  exhausted_ = taken.empty();
  if (!exhausted_) ++taken.back();
  path_ = std::move(taken);
}

Coverage Serial::coverage() const {
  Coverage coverage;
  coverage.exhausted = exhausted_;
  coverage.statement =
      fmt::format("serial: {} {} of whole calls, nothing else.", exhausted_ ? "all" : "the first",
                  orders_ == 1 ? "1 order" : fmt::format("{} orders", orders_));
  return coverage;
}

void Serial::save(ByteWriter& out) const {
  out.u64(orders_);
  out.u64(steps_);
  out.u64(exhausted_ ? 1 : 0);
  out.u64(path_.size());
  for (const uint64_t branch : path_) out.u64(branch);
}

bool Serial::load(ByteReader& in) {
  orders_ = in.u64();
  steps_ = in.u64();
  exhausted_ = in.u64() != 0;
  path_.resize(in.count());
  for (uint64_t& branch : path_) branch = in.u64();
  return in.ok();
}

}  // namespace slalom
