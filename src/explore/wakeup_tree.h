// WakeupTree: which schedules a partial-order reduction has executed, is executing and still has to execute.
//
// A node is a transition of an agent; a path from the root is a schedule. The children of a node are in the
// order in which they were asked for, and that order is what makes the search free of repetition: a branch
// may sleep on all that its left siblings do, whether or not they were executed yet. So leaves can be
// executed in any order and at the same time; only a left sibling whose footprint is not known for sure (a
// compare-and-swap that was never executed here) is waited for. Finished subtrees are freed; their first node
// stays for its siblings' sleep sets.
#pragma once

#include <memory>
#include <vector>

#include "explore/happens_before.h"
#include "explore/strategy.h"

namespace slalom {

struct TreeNode {
  enum class State : uint8_t { Waiting, Running, Executed };

  TreeNode* parent = nullptr;
  AgentId agent;
  std::vector<uint32_t> values;  // of its data choices, as far as they are fixed
  std::vector<Touch> touches;
  uint64_t digest = 0;  // of the choice point it is taken at
  uint32_t cost = 0;    // preemptions on the path, itself included
  State state = State::Waiting;
  bool uncertain = false;  // the touches may turn out otherwise
  uint64_t open = 0;       // waiting and running leaves at and below it
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

  // The leftmost leaf that may be executed now and costs no more than `limit`; it is Running from then on.
  TreeNode* next_leaf(uint32_t limit);
  uint32_t cheapest() const;  // cost of the cheapest waiting leaf

  // Wakeup sequences of optimal DPOR: adds `sequence` below `node` unless what it leads to is explored
  // anyway.
  void insert(TreeNode& node, const Sleep& sleep, Sequence sequence);
  // Backtrack sets of classic DPOR: adds the branch unless it is there.
  void add_branch(TreeNode& node, AgentId agent, uint32_t cost);
  TreeNode& add_child(TreeNode& node, AgentId agent, std::vector<uint32_t> values);
  void add_open(TreeNode& leaf);

  // The running leaf and what was executed below it is done; frees subtrees in which nothing is open.
  void finish(TreeNode& leaf, TreeNode& deepest);

  static void descend(Sleep& sleep, const TreeNode& child);  // into a child: who still sleeps after it

  void save(ByteWriter& out) const;
  bool load(ByteReader& in);

 private:
  TreeNode* find_leaf(TreeNode& node, uint32_t limit);

  std::unique_ptr<TreeNode> root_;
};

}  // namespace slalom
