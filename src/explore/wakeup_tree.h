// WakeupTree: the schedules that a partial-order reduction has executed, executes and still has to execute.
//
// A node is a transition of an agent; a path from the root is a schedule. Children are in the order in which
// they were requested, and are explored in that order: each child may sleep on everything that its left
// siblings do. Results from the left never change a waiting leaf. So leaves are *executed* ahead of their
// turn, many at a time, and only their results are taken in from left to right. There is one exception: if a
// left sibling's footprint is uncertain (a compare-and-swap never executed here), or it leads only to such
// nodes, the leaves to its right wait for it. Whether they are needed, and what they may sleep on, depends on
// it. Finished subtrees are freed; their first node stays for its siblings' sleep sets.
#pragma once

#include <memory>
#include <vector>

#include "explore/happens_before.h"
#include "explore/strategy.h"

namespace slalom {

// How well the touches of a transition that was not executed are known.
enum class Footprint : uint8_t {
  Known,
  Partial,   // there may be further touches
  Foreseen,  // a compare-and-swap in a new place: treated as a write, but it may only read
};

struct TreeNode {
  // Ready: executed, not yet taken in.
  enum class State : uint8_t { Waiting, Running, Ready, Executed };

  TreeNode() = default;
  ~TreeNode();  // not recursive, because paths can be long
  TreeNode(const TreeNode&) = delete;
  TreeNode& operator=(const TreeNode&) = delete;

  TreeNode* parent = nullptr;
  AgentId agent;
  std::vector<uint32_t> values;  // of its data choices, as far as they are fixed
  std::vector<Touch> touches;
  uint64_t digest = 0;  // of the choice point at which it is taken
  uint32_t cost = 0;    // preemptions on the path, including its own
  State state = State::Waiting;
  Footprint footprint = Footprint::Known;
  bool fatal = false;                 // it ended the execution, so nothing can follow it
  uint64_t open = 0;                  // leaves at and below this node that are not taken in
  std::unique_ptr<Execution> result;  // of a Ready leaf
  std::vector<std::unique_ptr<TreeNode>> children;
  struct Step {
    AgentId agent;
    std::vector<Touch> touches;
    Footprint footprint = Footprint::Known;
  };
  // For a leaf that is not Known: sequences that it may or may not explore.
  std::vector<std::vector<Step>> deferred;
};

bool conflict(std::span<const Touch> a, std::span<const Touch> b);

class WakeupTree {
 public:
  // A sequence of transitions to explore after a node.
  struct Item {
    AgentId agent;
    std::span<const Touch> touches;
    Footprint footprint = Footprint::Known;
  };
  using Sequence = std::vector<Item>;
  using Steps = std::vector<TreeNode::Step>;  // a Sequence that owns its touches
  using Sleep = std::vector<const TreeNode*>;

  WakeupTree();
  TreeNode& root() { return *root_; }
  bool finished() const { return root_->open == 0; }
  uint64_t open() const { return root_->open; }

  // Returns the waiting leaves that cost at most `limit`, among the `window` leftmost leaves of such cost.
  // Makes them Running.
  std::vector<TreeNode*> start_leaves(uint32_t limit, size_t window);
  std::vector<TreeNode*> started() const;  // the Running leaves, from left to right
  TreeNode* leftmost_leaf();  // the next leaf to take in, whatever its state; nullptr if the tree is finished
  uint32_t cheapest() const;  // cost of the cheapest leaf

  // Inserts a wakeup sequence of optimal DPOR: adds `sequence` below `node` unless the tree explores an
  // equivalent anyway. Only the execution of a leaf that is not Known shows whether the leaf explores the
  // sequence, so the leaf keeps the sequence until then.
  void insert(TreeNode& node, const Sleep& sleep, Sequence sequence);
  // Removes a foreseen leaf that turned out to be explored elsewhere. Returns the sequences kept there. The
  // parent may be left without children: see prune().
  std::vector<Steps> withdraw(TreeNode& leaf);
  // Removes all waiting nodes to the right of `child`. Returns them as sequences after the parent of `child`.
  std::vector<Steps> take_right_of(TreeNode& child);
  // Removes a node that no longer leads to a leaf, and its parents likewise: no agent may sleep on a
  // transition that is never explored. Frees subtrees without open leaves.
  void prune(TreeNode& node);
  // Adds a backtrack point of classic DPOR, unless the branch exists.
  void add_branch(TreeNode& node, AgentId agent, uint32_t cost);
  TreeNode& add_child(TreeNode& node, AgentId agent, std::vector<uint32_t> values);
  void add_open(TreeNode& leaf);

  // Takes in the leaf and everything executed below it, down to `deepest`. Frees subtrees without open
  // leaves.
  void finish(TreeNode& leaf, TreeNode& deepest);

  static void add_left_siblings(Sleep& sleep, const TreeNode& child);
  // Removes sleepers that depend on the child's transition.
  static void wake(Sleep& sleep, const TreeNode& child);
  // Both: leaves the agents that sleep after the child.
  static void descend(Sleep& sleep, const TreeNode& child);

  void save(ByteWriter& out) const;
  bool load(ByteReader& in);

 private:
  static uint64_t load_node(ByteReader& in, TreeNode& node);

  std::unique_ptr<TreeNode> root_;
};

}  // namespace slalom
