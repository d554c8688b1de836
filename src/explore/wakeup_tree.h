// WakeupTree: which schedules a partial-order reduction has executed, is executing and still has to execute.
//
// A node is a transition of an agent; a path from the root is a schedule. The children of a node are in the
// order in which they were asked for, and are explored in that order: each may sleep on all that its left
// siblings do. A leaf that waits is never changed by what is learned to its left, so leaves are *executed*
// ahead of their turn, many at a time, and only their results are taken in from left to right. One exception:
// a left sibling whose footprint is not known for sure (a compare-and-swap that was never executed here) is
// waited for, since the sleep set depends on it. Finished subtrees are freed; their first node stays for its
// siblings' sleep sets.
#pragma once

#include <memory>
#include <vector>

#include "explore/happens_before.h"
#include "explore/strategy.h"

namespace slalom {

struct TreeNode {
  enum class State : uint8_t { Waiting, Running, Ready, Executed };  // Ready: executed, not yet taken in

  TreeNode* parent = nullptr;
  AgentId agent;
  std::vector<uint32_t> values;  // of its data choices, as far as they are fixed
  std::vector<Touch> touches;
  uint64_t digest = 0;  // of the choice point it is taken at
  uint32_t cost = 0;    // preemptions on the path, itself included
  State state = State::Waiting;
  bool uncertain = false;             // the touches may turn out otherwise
  bool fatal = false;                 // it ended the execution: nothing can come after it
  uint64_t open = 0;                  // leaves at and below it that are not taken in
  std::unique_ptr<Execution> result;  // of a Ready leaf
  std::vector<std::unique_ptr<TreeNode>> children;
};

bool conflict(std::span<const Touch> a, std::span<const Touch> b);

class WakeupTree {
 public:
  // A sequence of transitions to be explored after some node.
  struct Item {
    AgentId agent;
    std::vector<uint32_t> values;
    std::span<const Touch> touches;
    bool uncertain = false;
  };
  using Sequence = std::vector<Item>;
  using Sleep = std::vector<const TreeNode*>;

  WakeupTree();
  TreeNode& root() { return *root_; }
  bool finished() const { return root_->open == 0; }
  uint64_t open() const { return root_->open; }

  // The waiting leaves among the `window` leftmost ones that cost no more than `limit`; they are Running from
  // then on.
  std::vector<TreeNode*> start_leaves(uint32_t limit, size_t window);
  TreeNode* leftmost_leaf();  // whose turn it is to be taken in, whatever its state
  uint32_t cheapest() const;  // cost of the cheapest leaf

  // Wakeup sequences of optimal DPOR: adds `sequence` below `node` unless what it leads to is explored
  // anyway.
  void insert(TreeNode& node, const Sleep& sleep, Sequence sequence);
  // Backtrack sets of classic DPOR: adds the branch unless it is there.
  void add_branch(TreeNode& node, AgentId agent, uint32_t cost);
  TreeNode& add_child(TreeNode& node, AgentId agent, std::vector<uint32_t> values);
  void add_open(TreeNode& leaf);

  // The leaf was taken in, with what was executed below it; frees subtrees in which nothing is open.
  void finish(TreeNode& leaf, TreeNode& deepest);

  static void add_left_siblings(Sleep& sleep, const TreeNode& child);
  static void wake(Sleep& sleep, const TreeNode& child);     // those that depend on the child's transition
  static void descend(Sleep& sleep, const TreeNode& child);  // both: who sleeps after the child

  void save(ByteWriter& out) const;
  bool load(ByteReader& in);

 private:
  void start_below(TreeNode& node, uint32_t limit, size_t& window, std::vector<TreeNode*>& started);

  std::unique_ptr<TreeNode> root_;
};

}  // namespace slalom
