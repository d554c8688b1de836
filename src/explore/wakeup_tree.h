// WakeupTree: which schedules a partial-order reduction has executed, is executing and still has to execute.
//
// A node is a transition of an agent; a path from the root is a schedule. The children of a node are in the
// order in which they were asked for, and are explored in that order: each may sleep on all that its left
// siblings do. A leaf that waits is never changed by what is learned to its left, so leaves are *executed*
// ahead of their turn, many at a time, and only their results are taken in from left to right. One exception:
// a left sibling whose footprint is not known for sure (a compare-and-swap that was never executed here), or
// that leads only to such, is waited for: what sleeps, and what is needed at all, depends on it. Finished
// subtrees are freed; their first node stays for its siblings' sleep sets.
#pragma once

#include <memory>
#include <vector>

#include "explore/happens_before.h"
#include "explore/strategy.h"

namespace slalom {

// How well the touches of a transition that was not executed are known.
enum class Footprint : uint8_t {
  Known,
  Partial,   // there may be more of them
  Foreseen,  // a compare-and-swap in a new place: taken as writing, but it may only read
};

struct TreeNode {
  enum class State : uint8_t { Waiting, Running, Ready, Executed };  // Ready: executed, not yet taken in

  TreeNode() = default;
  ~TreeNode();  // without recursion: paths can be long
  TreeNode(const TreeNode&) = delete;
  TreeNode& operator=(const TreeNode&) = delete;

  TreeNode* parent = nullptr;
  AgentId agent;
  std::vector<uint32_t> values;  // of its data choices, as far as they are fixed
  std::vector<Touch> touches;
  uint64_t digest = 0;  // of the choice point it is taken at
  uint32_t cost = 0;    // preemptions on the path, itself included
  State state = State::Waiting;
  Footprint footprint = Footprint::Known;
  bool fatal = false;                 // it ended the execution: nothing can come after it
  uint64_t open = 0;                  // leaves at and below it that are not taken in
  std::unique_ptr<Execution> result;  // of a Ready leaf
  std::vector<std::unique_ptr<TreeNode>> children;
  struct Step {
    AgentId agent;
    std::vector<Touch> touches;
    Footprint footprint = Footprint::Known;
  };
  std::vector<std::vector<Step>>
      deferred;  // of a leaf that is not Known: sequences it may or may not explore
};

bool conflict(std::span<const Touch> a, std::span<const Touch> b);

class WakeupTree {
 public:
  // A sequence of transitions to be explored after some node.
  struct Item {
    AgentId agent;
    std::span<const Touch> touches;
    Footprint footprint = Footprint::Known;
  };
  using Sequence = std::vector<Item>;
  using Steps = std::vector<TreeNode::Step>;  // the same, with touches of its own
  using Sleep = std::vector<const TreeNode*>;

  WakeupTree();
  TreeNode& root() { return *root_; }
  bool finished() const { return root_->open == 0; }
  uint64_t open() const { return root_->open; }

  // The waiting leaves among the `window` leftmost ones that cost no more than `limit`; they are Running from
  // then on.
  std::vector<TreeNode*> start_leaves(uint32_t limit, size_t window);
  std::vector<TreeNode*> started() const;  // the Running leaves, from left to right
  TreeNode* leftmost_leaf();               // whose turn it is to be taken in, whatever its state
  uint32_t cheapest() const;               // cost of the cheapest leaf

  // Wakeup sequences of optimal DPOR: adds `sequence` below `node` unless what it leads to is explored
  // anyway. Whether a leaf that is not Known explores it turns out when that is executed: until then the
  // sequence is kept there.
  void insert(TreeNode& node, const Sleep& sleep, Sequence sequence);
  // Takes a foreseen leaf out again, which turned out to be explored elsewhere; gives back what was kept
  // there. Its parent may be left without children: see prune().
  std::vector<Steps> withdraw(TreeNode& leaf);
  // Takes out all that waits to the right of `child`; gives it back as sequences after child's parent.
  std::vector<Steps> take_right_of(TreeNode& child);
  // Takes out a node that was to lead to something and does not any more, and its parents likewise: nobody
  // may sleep on what is never explored. Frees subtrees in which nothing is open.
  void prune(TreeNode& node);
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
  static uint64_t load_node(ByteReader& in, TreeNode& node);

  std::unique_ptr<TreeNode> root_;
};

}  // namespace slalom
