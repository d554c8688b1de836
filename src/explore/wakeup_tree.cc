#include "explore/wakeup_tree.h"

#include <algorithm>
#include <limits>

#include "explore/save.h"

namespace slalom {
namespace {

// Is the agent of `node` a weak initial of `sequence`: could `sequence` as well begin with it? If its
// transition is in the sequence, `position` is where; otherwise it is independent of all of it and `position`
// is the end.
bool is_weak_initial(const TreeNode& node, const WakeupTree::Sequence& sequence, size_t& position) {
  for (position = 0; position < sequence.size(); ++position) {
    if (sequence[position].agent == node.agent) return true;
    if (node.fatal || conflict(sequence[position].touches, node.touches)) return false;
  }
  return true;
}

}  // namespace

bool conflict(std::span<const Touch> a, std::span<const Touch> b) {
  for (const Touch& x : a) {
    if (x.effect == Effect::None) continue;
    for (const Touch& y : b)
      if (x.object == y.object && conflict(x.effect, y.effect)) return true;
  }
  return false;
}

WakeupTree::WakeupTree() : root_(std::make_unique<TreeNode>()) {
  root_->open = 1;
}

std::vector<TreeNode*> WakeupTree::start_leaves(uint32_t limit, size_t window) {
  std::vector<TreeNode*> started;
  if (root_->open > 0) start_below(*root_, limit, window, started);
  return started;
}

void WakeupTree::start_below(TreeNode& node, uint32_t limit, size_t& window,
                             std::vector<TreeNode*>& started) {
  if (node.cost > limit) return;
  if (node.children.empty()) {
    --window;
    if (node.state != TreeNode::State::Waiting) return;
    node.state = TreeNode::State::Running;
    started.push_back(&node);
    return;
  }
  for (const auto& child : node.children) {
    if (child->open > 0) start_below(*child, limit, window, started);
    if (window == 0) return;
    // What comes further right sleeps on this one, and cannot know what that means.
    if (child->uncertain && child->state != TreeNode::State::Executed) return;
  }
}

TreeNode* WakeupTree::leftmost_leaf() {
  TreeNode* node = root_.get();
  if (node->open == 0) return nullptr;
  while (!node->children.empty())
    node = std::find_if(node->children.begin(), node->children.end(), [](const auto& c) {
             return c->open > 0;
           })->get();
  return node;
}

uint32_t WakeupTree::cheapest() const {
  uint32_t best = std::numeric_limits<uint32_t>::max();
  std::vector<const TreeNode*> todo = {root_.get()};
  while (!todo.empty()) {
    const TreeNode* node = todo.back();
    todo.pop_back();
    if (node->open == 0 || node->cost >= best) continue;
    if (node->children.empty()) best = node->cost;
    for (const auto& child : node->children) todo.push_back(child.get());
  }
  return best;
}

void WakeupTree::insert(TreeNode& at, const Sleep& sleep, Sequence sequence) {
  size_t position = 0;
  for (const TreeNode* sleeper : sleep)
    if (is_weak_initial(*sleeper, sequence, position)) return;
  TreeNode* node = &at;
  while (!sequence.empty()) {
    const auto match = std::find_if(node->children.begin(), node->children.end(), [&](const auto& child) {
      return is_weak_initial(*child, sequence, position);
    });
    if (match == node->children.end()) break;
    TreeNode& child = **match;
    // A branch that was started explores all that begins with it, and so does a leaf; another value of the
    // same data choice will be added when the choice is met.
    if (child.state != TreeNode::State::Waiting || child.children.empty()) return;
    if (position < sequence.size()) {
      if (sequence[position].values != child.values) return;
      sequence.erase(sequence.begin() + static_cast<std::ptrdiff_t>(position));
    }
    node = &child;
  }
  if (sequence.empty()) return;
  for (Item& item : sequence) {
    node = &add_child(*node, item.agent, std::move(item.values));
    node->touches.assign(item.touches.begin(), item.touches.end());
    node->uncertain = item.uncertain;
  }
  add_open(*node);
}

TreeNode& WakeupTree::add_child(TreeNode& node, AgentId agent, std::vector<uint32_t> values) {
  auto child = std::make_unique<TreeNode>();
  child->parent = &node;
  child->agent = agent;
  child->values = std::move(values);
  // The values of one agent's data choice stay together: to its right they are asleep as one, among
  // themselves never.
  const auto same = [&](const auto& other) { return other->agent == agent; };
  const auto last = std::find_if(node.children.rbegin(), node.children.rend(), same);
  const auto at = last == node.children.rend() ? node.children.end() : last.base();
  return **node.children.insert(at, std::move(child));
}

void WakeupTree::add_open(TreeNode& leaf) {
  for (TreeNode* node = &leaf; node != nullptr; node = node->parent) ++node->open;
}

void WakeupTree::add_branch(TreeNode& node, AgentId agent, uint32_t cost) {
  for (const auto& child : node.children)
    if (child->agent == agent) return;
  TreeNode& child = add_child(node, agent, {});
  child.uncertain = true;
  child.cost = cost;
  add_open(child);
}

void WakeupTree::finish(TreeNode& leaf, TreeNode& deepest) {
  for (TreeNode* node = &leaf; node != nullptr; node = node->parent) --node->open;
  for (TreeNode* node = &deepest; node != nullptr && node->open == 0; node = node->parent)
    node->children.clear();
}

void WakeupTree::add_left_siblings(Sleep& sleep, const TreeNode& child) {
  for (const auto& sibling : child.parent->children) {
    if (sibling.get() == &child) break;
    if (sibling->agent != child.agent) sleep.push_back(sibling.get());
  }
}

void WakeupTree::descend(Sleep& sleep, const TreeNode& child) {
  add_left_siblings(sleep, child);
  wake(sleep, child);
}

void WakeupTree::wake(Sleep& sleep, const TreeNode& child) {
  // An agent may sleep with several values of a data choice: what wakes one of them wakes the agent.
  const auto wakes = [&](const TreeNode* sleeper) {
    return sleeper->agent == child.agent || conflict(sleeper->touches, child.touches);
  };
  for (size_t i = 0; i < sleep.size();) {
    if (!wakes(sleep[i])) {
      ++i;
      continue;
    }
    const AgentId agent = sleep[i]->agent;
    std::erase_if(sleep, [&](const TreeNode* sleeper) { return sleeper->agent == agent; });
    i = 0;
  }
}

void WakeupTree::save(ByteWriter& out) const {
  struct Visit {
    static void node(ByteWriter& out, const TreeNode& node) {
      encode(out, node.agent);
      out.u64(node.values.size());
      for (uint32_t value : node.values) out.u64(value);
      encode(out, node.touches);
      out.fixed64(node.digest);
      out.u64(node.cost);
      out.u8(node.state == TreeNode::State::Executed);
      out.u8(node.uncertain);
      out.u8(node.fatal);
      out.u8(node.result != nullptr);
      if (node.result) encode(out, *node.result);
      out.u64(node.children.size());
      for (const auto& child : node.children) Visit::node(out, *child);
    }
  };
  out.u8(root_->open > 0);
  Visit::node(out, *root_);
}

bool WakeupTree::load(ByteReader& in) {
  struct Visit {
    static void node(ByteReader& in, WakeupTree& tree, TreeNode& node, size_t depth) {
      if (depth > 100'000) in.fail();
      decode(in, node.agent);
      node.values.resize(in.count());
      for (uint32_t& value : node.values) value = static_cast<uint32_t>(in.u64());
      decode(in, node.touches);
      node.digest = in.fixed64();
      node.cost = static_cast<uint32_t>(in.u64());
      node.state = in.u8() != 0 ? TreeNode::State::Executed : TreeNode::State::Waiting;
      node.uncertain = in.u8() != 0;
      node.fatal = in.u8() != 0;
      if (in.u8() != 0) {
        node.state = TreeNode::State::Ready;
        node.result = std::make_unique<Execution>();
        decode(in, *node.result);
      }
      const uint64_t children = in.count();
      for (uint64_t i = 0; i < children && in.ok(); ++i)
        Visit::node(in, tree, tree.add_child(node, {}, {}), depth + 1);
      if (children == 0 && node.state == TreeNode::State::Waiting && node.parent != nullptr)
        tree.add_open(node);
    }
  };
  root_ = std::make_unique<TreeNode>();
  const bool unfinished = in.u8() != 0;
  Visit::node(in, *this, *root_, 0);
  if (unfinished && root_->children.empty()) root_->open = 1;
  return in.ok();
}

}  // namespace slalom
