#include "explore/strategies/dpor.h"

#include <algorithm>

#include "explore/save.h"
#include "explore/strategies/dpor_walk.h"

namespace slalom {
namespace {

// All branches of a node are taken at one choice point. Executed branches know its digest.
uint64_t digest_below(const TreeNode& node) {
  for (const auto& child : node.children)
    if (child->digest != 0) return child->digest;
  return 0;
}

}  // namespace

std::string Dpor::name() const {
  switch (options_.mode) {
    case DporOptions::Mode::Fine:
      return "dpor";
    case DporOptions::Mode::Coarse:
      return "dpor coarse";
    case DporOptions::Mode::Bounded:
      return "dpor by preemptions";
  }
  return {};
}

std::optional<Task> Dpor::begin() {
  if (next_.empty() && running_.empty()) {
    std::vector<TreeNode*> leaves = tree_.start_leaves(bound_, window_);
    if (leaves.empty() && !tree_.finished()) {
      const uint32_t next = tree_.cheapest();
      if (next > options_.limit) return std::nullopt;
      bound_ = next;
      leaves = tree_.start_leaves(bound_, window_);
    }
    next_.assign(leaves.begin(), leaves.end());
  }
  while (!next_.empty()) {
    TreeNode* leaf = next_.front();
    next_.pop_front();
    if (std::optional<Task> task = make_task(*leaf)) {
      running_.push_back(leaf);
      return task;
    }
    leaf->state = TreeNode::State::Executed;
    tree_.finish(*leaf, *leaf);
    take_in_ready();
  }
  if (running_.empty() && !tree_.finished() && mode_ != DporOptions::Mode::Bounded) return begin();
  return std::nullopt;
}

// Returns no task if the leaf turns out to be explored elsewhere: it was inserted before the footprints to
// its left were known.
std::optional<Task> Dpor::make_task(TreeNode& leaf) {
  std::vector<TreeNode*> path;
  for (TreeNode* node = &leaf; node->parent != nullptr; node = node->parent) path.push_back(node);
  std::reverse(path.begin(), path.end());
  Task task;
  DporHint hint;
  Sleep sleep;
  for (TreeNode* node : path) {
    if (mode_ != DporOptions::Mode::Bounded) {
      WakeupTree::add_left_siblings(sleep, *node);
      for (const TreeNode* sleeper : sleep)
        if (sleeper->agent == node->agent && mode_ == DporOptions::Mode::Fine) return std::nullopt;
    }
    if (node == &leaf) break;
    task.prefix.push_back({node->agent, 0, false, digest_below(*node->parent)});
    for (uint32_t value : node->values) task.prefix.push_back({node->agent, value, true, 0});
    if (mode_ != DporOptions::Mode::Bounded) WakeupTree::wake(sleep, *node);
  }
  if (!path.empty()) {
    task.digest = digest_below(*leaf.parent);
    hint.next = leaf.agent;
    hint.values = leaf.values;
  }
  for (const TreeNode* sleeper : sleep)
    hint.sleepers.push_back({sleeper->agent, sleeper->touches, sleeper->fatal});
  if (options_.defect == DporOptions::Defect::WrongSleepSet)
    for (Sleeper& sleeper : hint.sleepers) sleeper.touches.clear();  // no transition ever wakes them
  hint.foreseen = leaf.footprint == Footprint::Foreseen;
  task.hint = std::move(hint);
  task.index = tasks_++;
  return task;
}

std::unique_ptr<Walker> Dpor::walker(const Task& task) const {
  return std::make_unique<DporWalk>(hint_of<DporHint>(task));
}

void Dpor::end(const Task&, const Execution& execution) {
  TreeNode& ended = *running_.front();
  running_.pop_front();
  ++executions_;
  if (stale_ > 0) {
    --stale_;
    return;
  }
  ended.state = TreeNode::State::Ready;
  // Without sleep sets, the order of siblings does not matter.
  const bool bounded = mode_ == DporOptions::Mode::Bounded;
  if (bounded || &ended == tree_.leftmost_leaf())
    take_in(ended, execution);
  else
    ended.result = std::make_unique<Execution>(execution);
  if (!bounded) take_in_ready();
}

void Dpor::take_in_ready() {
  for (;;) {
    TreeNode* leaf = tree_.leftmost_leaf();
    if (leaf == nullptr || leaf->state != TreeNode::State::Ready) break;
    const std::unique_ptr<Execution> result = std::move(leaf->result);
    take_in(*leaf, *result);
  }
}

bool Dpor::has_values() const {
  const auto chooses = [](const Touch& touch) { return touch.op == OpKind::Choose; };
  for (size_t i = 0; i < order_.size(); ++i)
    if (!order_[i].values.empty() || std::ranges::any_of(order_.touches(i), chooses)) return true;
  return false;
}

// Wakeup sequences cannot know what another value leads to. Source sets need not know.
void Dpor::start_again() {
  mode_ = DporOptions::Mode::Coarse;
  stale_ = running_.size();
  next_.clear();
  retired_ = std::exchange(tree_, WakeupTree());
  explored_ = 0;
}

// Inserts sequences again that were dropped, or put to the right, because of a footprint that turned out to
// be different.
void Dpor::reinsert(TreeNode& parent, const std::vector<WakeupTree::Steps>& sequences) {
  if (sequences.empty()) return;
  std::vector<const TreeNode*> path;
  for (const TreeNode* node = &parent; node->parent != nullptr; node = node->parent) path.push_back(node);
  Sleep sleep;
  for (size_t i = path.size(); i-- > 0;) WakeupTree::descend(sleep, *path[i]);
  for (const WakeupTree::Steps& sequence : sequences) {
    sequence_.clear();
    for (const TreeNode::Step& step : sequence)
      sequence_.push_back({step.agent, step.touches, step.footprint});
    tree_.insert(parent, sleep, std::move(sequence_));
  }
}

// Removes a leaf that was not needed, and inserts again the sequences that were left to it.
void Dpor::withdraw(TreeNode& leaf) {
  TreeNode& parent = *leaf.parent;
  reinsert(parent, tree_.withdraw(leaf));
  tree_.prune(parent);
}

// Handles a leaf that was executed with another footprint than foreseen. The real leaf may explore branches
// to its right. Such a branch would sleep on the leaf, and would yet count as exploring everything that
// begins like it.
void Dpor::correct(TreeNode& leaf, std::span<const Touch> foreseen) {
  const std::vector<WakeupTree::Steps> deferred = std::exchange(leaf.deferred, {});
  const auto same = [](const Touch& a, const Touch& b) {
    return a.object == b.object && a.effect == b.effect;
  };
  if (std::equal(foreseen.begin(), foreseen.end(), leaf.touches.begin(), leaf.touches.end(), same)) return;
  reinsert(*leaf.parent, tree_.take_right_of(leaf));
  reinsert(*leaf.parent, deferred);
}

void Dpor::take_in(TreeNode& leaf, const Execution& execution) {
  // A diverged or endless execution stands for no known set of executions. The search reports that it was not
  // exhaustive.
  if (execution.divergence || std::holds_alternative<ToolError>(execution.outcome) ||
      std::holds_alternative<LimitReached>(execution.outcome)) {
    leaf.state = TreeNode::State::Executed;
    tree_.finish(leaf, leaf);
    return;
  }
  order_.build(execution);
  const auto* abandoned = std::get_if<Abandoned>(&execution.outcome);
  if (abandoned != nullptr && abandoned->why == DporWalk::kElsewhere) {
    withdraw(leaf);
    return;
  }
  if (mode_ == DporOptions::Mode::Fine && has_values()) {
    start_again();
    return;
  }
  const bool uncertain = mode_ == DporOptions::Mode::Fine && leaf.footprint != Footprint::Known;
  const std::vector<Touch> foreseen = uncertain ? leaf.touches : std::vector<Touch>();
  enter_path(leaf, execution);
  if (uncertain) correct(leaf, foreseen);
  using Ancestors = HappensBefore::Ancestors;
  const Ancestors ancestors =
      mode_ == DporOptions::Mode::Fine || options_.defect == DporOptions::Defect::ForgottenAncestor
          ? Ancestors::Immediate
      // Within a bound, running into a held lock matters, because the switch after it costs nothing.
      : mode_ == DporOptions::Mode::Bounded ? Ancestors::AllAndAwaited
                                            : Ancestors::All;
  for (size_t j = 1; j < order_.with_blocked(); ++j) {
    order_.races(j, ancestors, races_);
    if (options_.defect == DporOptions::Defect::ForgottenAncestor && races_.size() > 1) races_.resize(1);
    for (uint32_t e : races_)
      if (options_.defect != DporOptions::Defect::MissedRace || (e + j) % 3 != 0) reverse(e, j, execution);
  }
  for (const HappensBefore::Overtaken& overtaken : order_.overtaken())
    reverse(overtaken.by, overtaken.limit, execution);
  if (ends_early(execution)) branch_at_end(execution);
  double share = 1;
  for (size_t i = 0; i < order_.size(); ++i)
    share /= static_cast<double>(std::max<size_t>(1, path_[i]->children.size()));
  explored_ += share;
  tree_.finish(leaf, *path_.back());
}

// Sets path_ and sleep_ for the execution, adds its nodes below the leaf, and corrects foreseen footprints.
void Dpor::enter_path(TreeNode& leaf, const Execution& execution) {
  path_.clear();
  for (TreeNode* node = &leaf; node != nullptr; node = node->parent) path_.push_back(node);
  std::reverse(path_.begin(), path_.end());
  const size_t guided = path_.size() - 1;
  leaf.state = TreeNode::State::Executed;
  sleep_.resize(order_.size() + 1);
  sleep_[0].clear();
  for (size_t i = 0; i < order_.size(); ++i) {
    const HappensBefore::Transition& transition = order_[i];
    if (i >= guided) {
      const uint32_t cost = cost_at(i, transition.agent, execution);
      path_.push_back(&tree_.add_child(*path_[i], transition.agent, {}));
      path_.back()->cost = cost;
    }
    TreeNode& node = *path_[i + 1];
    CHECK(node.agent == transition.agent, "the execution left its path at transition {}", i);
    if (node.state != TreeNode::State::Executed || &node == &leaf || i >= guided) {
      const auto touches = order_.touches(i);
      node.touches.assign(touches.begin(), touches.end());
      node.footprint = Footprint::Known;
      node.state = TreeNode::State::Executed;
      node.digest = execution.choices[transition.choice].taken.digest;
      if (!transition.values.empty()) add_values(node, execution, i);
    }
    sleep_[i + 1] = sleep_[i];
    if (mode_ != DporOptions::Mode::Bounded) WakeupTree::descend(sleep_[i + 1], node);
  }
  path_.resize(order_.size() + 1);
  if (ends_early(execution)) path_.back()->fatal = true;
}

// Adds a branch for every other value of a data choice that was first met here.
void Dpor::add_values(TreeNode& node, const Execution& execution, size_t transition) {
  const HappensBefore::Transition& made = order_[transition];
  node.values = made.values;
  for (size_t v = 0; v < made.values.size(); ++v) {
    const uint32_t arity = execution.choices[made.choice + 1 + v].arity;
    for (uint32_t value = 0; value < arity; ++value) {
      std::vector<uint32_t> values(made.values.begin(), made.values.begin() + static_cast<std::ptrdiff_t>(v));
      values.push_back(value);
      const auto has_it = [&](const auto& sibling) {
        return sibling->agent == node.agent && sibling->values.size() > v &&
               std::equal(values.begin(), values.end(), sibling->values.begin());
      };
      if (std::any_of(node.parent->children.begin(), node.parent->children.end(), has_it)) continue;
      TreeNode& other = tree_.add_child(*node.parent, node.agent, std::move(values));
      other.touches = node.touches;
      other.digest = node.digest;
      other.cost = node.cost;
      other.footprint = Footprint::Partial;
      tree_.add_open(other);
    }
  }
}

// Returns whether the last transition prevented other agents from going on. A failure does, and so does the
// end of a program whose threads have not ended.
bool Dpor::ends_early(const Execution& execution) const {
  if (order_.size() == 0) return false;
  if (std::holds_alternative<Faulted>(execution.outcome)) return true;
  const HappensBefore::Transition& last = order_[order_.size() - 1];
  return std::holds_alternative<Exited>(execution.outcome) &&
         std::ranges::any_of(execution.options_at(last.choice),
                             [&](const Option& option) { return option.agent != last.agent; });
}

// Nothing can follow an early end, so it cannot be part of what comes before another transition.
size_t Dpor::before_end() const {
  return order_.size() - (path_.back()->fatal ? 1 : 0);
}

void Dpor::reverse(size_t e, size_t j, const Execution& execution) {
  if (mode_ == DporOptions::Mode::Fine)
    reverse_optimal(e, j);
  else if (mode_ == DporOptions::Mode::Coarse)
    reverse_coarse(e, j);
  else
    reverse_bounded(e, order_[j].agent, execution);
}

// Explores, in the place of e, everything that does not depend on e, then j.
void Dpor::reverse_optimal(size_t e, size_t j) {
  sequence_.clear();
  for (size_t i = e + 1; i < before_end(); ++i)
    if (i != j && !order_.before(e, i)) sequence_.push_back({order_[i].agent, order_.touches(i)});
  // In its new place, the transition may touch objects that it did not touch in its old one.
  foreseen_.assign(order_.touches(j).begin(), order_.touches(j).end());
  Footprint footprint = j < order_.size() ? Footprint::Known : Footprint::Partial;
  const bool may_fail = order_.pending(j) == OpKind::TryLock;
  for (Touch& touch : foreseen_)
    if ((may_fail && !is_context_op(touch.op)) || may_only_read(touch.op)) {
      touch.effect = Effect::Write;
      footprint = Footprint::Foreseen;
    }
  sequence_.push_back({order_[j].agent, foreseen_, footprint});
  tree_.insert(*path_[e], sleep_[e], std::move(sequence_));
}

// Lets an agent run in the place of e that can begin everything that does not depend on e, then j.
void Dpor::reverse_coarse(size_t e, size_t j) {
  const auto known = [&](AgentId agent) {
    const auto same = [&](const auto& node) { return node->agent == agent; };
    return std::any_of(path_[e]->children.begin(), path_[e]->children.end(), same) ||
           std::any_of(sleep_[e].begin(), sleep_[e].end(), same);
  };
  // An initial: no transition that comes before it in the order comes before it in the sequence. The last
  // transition is j, which may take another branch in its new place and touch other objects. It is an initial
  // only if it is alone.
  AgentId first;
  initials_.clear();
  const size_t end = before_end();
  for (size_t i = e + 1; i <= std::max(end, e + 1); ++i) {
    const size_t at = i < end ? i : j;
    if (i < end && (i == j || order_.before(e, i))) continue;
    const auto comes_first = [&](size_t earlier) {
      return order_.leads_to(earlier, at) || conflict(order_.touches(earlier), order_.touches(at));
    };
    const bool initial =
        i < end ? std::none_of(initials_.begin(), initials_.end(), comes_first) : initials_.empty();
    if (initial) {
      if (known(order_[at].agent)) return;
      if (!first) first = order_[at].agent;
    }
    initials_.push_back(at);
  }
  tree_.add_branch(*path_[e], first, 0);
}

void Dpor::reverse_bounded(size_t e, AgentId agent, const Execution& execution) {
  branch_bounded(e, agent, execution);
  // Also adds the switch where e's agent was switched to: there it may cost no preemption.
  size_t start = e;
  while (start > 0 && order_[start - 1].agent == order_[e].agent) --start;
  if (start != e) branch_bounded(start, agent, execution);
}

void Dpor::branch_bounded(size_t at, AgentId agent, const Execution& execution) {
  const auto options = execution.options_at(order_[at].choice);
  const bool enabled =
      std::any_of(options.begin(), options.end(), [&](const Option& o) { return o.agent == agent; });
  for (const Option& option : options)
    if (!enabled || option.agent == agent)
      tree_.add_branch(*path_[at], option.agent, cost_at(at, option.agent, execution));
}

// The transitions that an early end prevented may have prevented the end. All other agents get a turn in its
// place.
void Dpor::branch_at_end(const Execution& execution) {
  const size_t last = order_.size() - 1;
  for (const Option& option : execution.options_at(order_[last].choice)) {
    if (option.agent == order_[last].agent) continue;
    if (mode_ != DporOptions::Mode::Fine) {
      const auto sleeps = [&](const TreeNode* sleeper) { return sleeper->agent == option.agent; };
      if (mode_ == DporOptions::Mode::Bounded)
        reverse_bounded(last, option.agent, execution);
      else if (std::none_of(sleep_[last].begin(), sleep_[last].end(), sleeps))
        tree_.add_branch(*path_[last], option.agent, 0);
      continue;
    }
    const Touch touch{option.op.object, 0, {}, option.op.kind, effect(option.op.kind)};
    sequence_.assign(1, {option.agent, std::span(&touch, 1),
                         may_only_read(touch.op) ? Footprint::Foreseen : Footprint::Partial});
    tree_.insert(*path_[last], sleep_[last], std::move(sequence_));
  }
}

uint32_t Dpor::cost_at(size_t at, AgentId agent, const Execution& execution) const {
  if (mode_ != DporOptions::Mode::Bounded) return 0;
  const ChoiceRecord& record = execution.choices[order_[at].choice];
  return path_[at]->cost + (record.kind == ChoiceKind::Running && agent != record.current ? 1 : 0);
}

Coverage Dpor::coverage() const {
  Coverage coverage;
  const bool bounded = mode_ == DporOptions::Mode::Bounded;
  coverage.exhausted =
      running_.empty() && (tree_.finished() || (bounded && tree_.cheapest() > options_.limit));
  if (explored_ > 0)
    coverage.estimated_total = std::max(static_cast<double>(executions_) / std::min(1.0, explored_),
                                        static_cast<double>(executions_ + tree_.open()));
  if (bounded && !tree_.finished()) {
    coverage.bound = "preemptions";
    if (coverage.exhausted)
      coverage.completed = options_.limit;
    else if (bound_ > 0)
      coverage.completed = bound_ - 1;
  }
  if (coverage.exhausted && tree_.finished())
    coverage.statement = mode_ == DporOptions::Mode::Coarse
                             ? "every order of dependent transitions between the choice points was executed"
                             : "every order of dependent operations was executed";
  else if (coverage.completed)
    coverage.statement =
        fmt::format("every order of dependent operations within {} was executed", coverage.in_words());
  else
    coverage.statement =
        fmt::format("{} still to be explored",
                    tree_.open() == 1 ? "1 branch is" : fmt::format("{} branches are", tree_.open()));
  return coverage;
}

void Dpor::save(ByteWriter& out) const {
  CHECK(running_.empty(), "a search is saved between rounds");
  out.u64(tasks_);
  out.u64(executions_);
  out.fixed64(std::bit_cast<uint64_t>(explored_));
  out.u64(bound_);
  out.u8(static_cast<uint8_t>(mode_));
  tree_.save(out);
}

bool Dpor::load(ByteReader& in) {
  tasks_ = in.u64();
  executions_ = in.u64();
  explored_ = std::bit_cast<double>(in.fixed64());
  decode_u32(in, bound_);
  decode_enum(in, mode_, 3);
  if (!tree_.load(in)) return false;
  // A search is saved when no more results can be taken in, so the leftmost leaf still has to be executed, or
  // there is none.
  const TreeNode* leaf = tree_.leftmost_leaf();
  if (leaf != nullptr && leaf->state != TreeNode::State::Waiting && leaf->state != TreeNode::State::Running)
    return false;
  const std::vector<TreeNode*> started = tree_.started();
  next_.assign(started.begin(), started.end());
  return true;
}

}  // namespace slalom
