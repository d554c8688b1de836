#include "explore/wakeup_tree.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "explore/save.h"

namespace slalom {
namespace {

// Returns whether the agent of `node` is a weak initial of `sequence`, which means that an equivalent
// sequence begins with it. If the agent's transition is in the sequence, sets `position` to it. Otherwise the
// transition is independent of the whole sequence, and `position` is the end.
bool is_weak_initial(const TreeNode& node, const WakeupTree::Sequence& sequence, size_t& position) {
  for (position = 0; position < sequence.size(); ++position) {
    if (sequence[position].agent == node.agent) return true;
    if (node.fatal || conflict(sequence[position].touches, node.touches)) return false;
  }
  return true;
}

}  // namespace

bool conflict(std::span<const Touch> a, std::span<const Touch> b) {
  if (ends_all(a) || ends_all(b)) return true;
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

TreeNode::~TreeNode() {
  std::vector<std::unique_ptr<TreeNode>> todo = std::move(children);
  while (!todo.empty()) {
    const std::unique_ptr<TreeNode> node = std::move(todo.back());
    todo.pop_back();
    std::move(node->children.begin(), node->children.end(), std::back_inserter(todo));
    node->children.clear();
  }
}

std::vector<TreeNode*> WakeupTree::start_leaves(uint32_t limit, size_t window) {
  std::vector<TreeNode*> started;
  struct Place {
    TreeNode* node;
    size_t next;  // child to enter next
    bool waits;   // for the child before
  };
  std::vector<Place> path;
  // Whether the node may turn out to be something else, or to lead nowhere. Nodes further right would sleep
  // on it without knowing what that means.
  const auto uncertain = [](const TreeNode& node, bool below) {
    return node.state != TreeNode::State::Executed && (below || node.footprint != Footprint::Known);
  };
  const auto enter = [&](TreeNode& node) {
    if (!node.children.empty() && node.open > 0 && node.cost <= limit) {
      path.push_back({&node, 0, false});
      return;
    }
    if (!path.empty()) path.back().waits = uncertain(node, false);
    if (node.open == 0 || node.cost > limit) return;
    --window;
    if (node.state != TreeNode::State::Waiting) return;
    node.state = TreeNode::State::Running;
    started.push_back(&node);
  };
  enter(*root_);
  while (!path.empty() && window > 0) {
    Place& at = path.back();
    if (!at.waits && at.next < at.node->children.size()) {
      enter(*at.node->children[at.next++]);
      continue;
    }
    const bool waits = uncertain(*at.node, at.waits);
    path.pop_back();
    if (!path.empty()) path.back().waits = waits;
  }
  return started;
}

std::vector<TreeNode*> WakeupTree::started() const {
  std::vector<TreeNode*> started;
  std::vector<TreeNode*> todo = {root_.get()};
  while (!todo.empty()) {
    TreeNode* node = todo.back();
    todo.pop_back();
    if (node->children.empty() && node->state == TreeNode::State::Running) started.push_back(node);
    for (size_t i = node->children.size(); i-- > 0;) todo.push_back(node->children[i].get());
  }
  return started;
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
    // The tree already explores everything that begins with a node that was taken in. The same holds for a
    // leaf.
    if (child.state == TreeNode::State::Executed) return;
    if (child.children.empty()) {
      if (child.footprint == Footprint::Known) return;
      std::vector<TreeNode::Step>& kept = child.deferred.emplace_back();
      for (const Item& item : sequence)
        kept.push_back({item.agent, {item.touches.begin(), item.touches.end()}, item.footprint});
      return;
    }
    if (position < sequence.size()) sequence.erase(sequence.begin() + static_cast<std::ptrdiff_t>(position));
    node = &child;
  }
  if (sequence.empty()) return;
  for (const Item& item : sequence) {
    node = &add_child(*node, item.agent, {});
    node->touches.assign(item.touches.begin(), item.touches.end());
    node->footprint = item.footprint;
  }
  add_open(*node);
}

std::vector<WakeupTree::Steps> WakeupTree::withdraw(TreeNode& leaf) {
  std::vector<Steps> deferred = std::move(leaf.deferred);
  for (TreeNode* node = &leaf; node != nullptr; node = node->parent) --node->open;
  std::erase_if(leaf.parent->children, [&](const auto& node) { return node.get() == &leaf; });
  return deferred;
}

std::vector<WakeupTree::Steps> WakeupTree::take_right_of(TreeNode& child) {
  auto& siblings = child.parent->children;
  const auto first =
      std::find_if(siblings.begin(), siblings.end(), [&](const auto& node) { return node.get() == &child; }) +
      1;
  std::vector<Steps> taken;
  std::vector<TreeNode*> todo;
  uint64_t open = 0;
  for (auto sibling = siblings.end(); sibling != first;) {
    open += (*--sibling)->open;
    todo.push_back(sibling->get());
  }
  while (!todo.empty()) {
    TreeNode& node = *todo.back();
    todo.pop_back();
    CHECK(node.state == TreeNode::State::Waiting, "what lies to the right of a guess was not waiting");
    for (size_t i = node.children.size(); i-- > 0;) todo.push_back(node.children[i].get());
    if (!node.children.empty()) continue;
    Steps steps;
    for (const TreeNode* step = &node; step != child.parent; step = step->parent)
      steps.push_back({step->agent, step->touches, step->footprint});
    std::reverse(steps.begin(), steps.end());
    taken.push_back(steps);
    steps.pop_back();
    for (Steps& deferred : node.deferred) {
      taken.push_back(steps);
      std::move(deferred.begin(), deferred.end(), std::back_inserter(taken.back()));
    }
  }
  siblings.erase(first, siblings.end());
  for (TreeNode* node = child.parent; node != nullptr; node = node->parent) node->open -= open;
  return taken;
}

void WakeupTree::prune(TreeNode& node) {
  TreeNode* last = &node;
  while (last->state != TreeNode::State::Executed && last->children.empty() && last->parent != nullptr) {
    TreeNode* parent = last->parent;
    std::erase_if(parent->children, [&](const auto& child) { return child.get() == last; });
    last = parent;
  }
  for (; last != nullptr && last->open == 0; last = last->parent) last->children.clear();
}

TreeNode& WakeupTree::add_child(TreeNode& node, AgentId agent, std::vector<uint32_t> values) {
  auto child = std::make_unique<TreeNode>();
  child->parent = &node;
  child->agent = agent;
  child->values = std::move(values);
  // Siblings with the values of one agent's data choice stay together. Nodes to their right have all of them
  // asleep together; among themselves, they never sleep on one another.
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
  child.footprint = Footprint::Partial;
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
  // An agent may sleep with several values of a data choice. If one of them wakes, the agent wakes.
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

// Writes parents before children, each with the number of its children. Not recursive, because paths can be
// long.
void WakeupTree::save(ByteWriter& out) const {
  out.u8(root_->open > 0);
  std::vector<const TreeNode*> todo = {root_.get()};
  while (!todo.empty()) {
    const TreeNode& node = *todo.back();
    todo.pop_back();
    encode(out, node.agent);
    out.u64(node.values.size());
    for (uint32_t value : node.values) out.u64(value);
    encode(out, node.touches);
    out.fixed64(node.digest);
    out.u64(node.cost);
    out.u8(static_cast<uint8_t>(node.state));
    out.u8(static_cast<uint8_t>(node.footprint));
    out.u8(node.fatal);
    out.u64(node.deferred.size());
    for (const auto& sequence : node.deferred) {
      out.u64(sequence.size());
      for (const TreeNode::Step& step : sequence) {
        encode(out, step.agent);
        encode(out, step.touches);
        out.u8(static_cast<uint8_t>(step.footprint));
      }
    }
    if (node.state == TreeNode::State::Ready) encode(out, *node.result);
    out.u64(node.children.size());
    for (size_t i = node.children.size(); i-- > 0;) todo.push_back(node.children[i].get());
  }
}

uint64_t WakeupTree::load_node(ByteReader& in, TreeNode& node) {
  decode(in, node.agent);
  for (uint64_t n = in.count(); n > 0; --n) decode_u32(in, node.values.emplace_back());
  decode(in, node.touches);
  node.digest = in.fixed64();
  decode_u32(in, node.cost);
  decode_enum(in, node.state, 4);
  decode_enum(in, node.footprint, 3);
  node.fatal = in.u8() != 0;
  for (uint64_t sequences = in.count(); sequences > 0; --sequences) {
    std::vector<TreeNode::Step>& sequence = node.deferred.emplace_back();
    for (uint64_t steps = in.count(); steps > 0; --steps) {
      TreeNode::Step& step = sequence.emplace_back();
      decode(in, step.agent);
      decode(in, step.touches);
      decode_enum(in, step.footprint, 3);
    }
  }
  if (node.state == TreeNode::State::Ready) {
    node.result = std::make_unique<Execution>();
    decode(in, *node.result);
  }
  return in.count();
}

bool WakeupTree::load(ByteReader& in) {
  root_ = std::make_unique<TreeNode>();
  const bool unfinished = in.u8() != 0;
  std::vector<std::pair<TreeNode*, uint64_t>> path = {
      {root_.get(), load_node(in, *root_)}};  // and the number of children left
  while (!path.empty() && in.ok()) {
    auto& [parent, left] = path.back();
    if (left-- == 0) {
      path.pop_back();
      continue;
    }
    TreeNode& node = *parent->children.emplace_back(std::make_unique<TreeNode>());
    node.parent = parent;
    const uint64_t children = load_node(in, node);
    if (node.cost < parent->cost) return false;
    if (children > 0)
      path.emplace_back(&node, children);
    else if (node.state != TreeNode::State::Executed)
      add_open(node);
  }
  if (unfinished && root_->children.empty()) root_->open = 1;
  return in.ok();
}

}  // namespace slalom
