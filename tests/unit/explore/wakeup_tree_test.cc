#include "explore/wakeup_tree.h"

#include <gtest/gtest.h>

#include <limits>

namespace slalom {
namespace {

constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();
const AgentId kP = AgentId::initial(0), kQ = AgentId::initial(1), kR = AgentId::initial(2);

std::vector<Touch> touches(uint64_t object, OpKind op) {
  return {Touch{ObjectId{object}, 0, {}, op, effect(op)}};
}
const std::vector<Touch> kReadX = touches(8, OpKind::Load);
const std::vector<Touch> kWriteX = touches(8, OpKind::Store);
const std::vector<Touch> kWriteY = touches(16, OpKind::Store);

WakeupTree::Item item(AgentId agent, const std::vector<Touch>& what, Footprint footprint = Footprint::Known) {
  return {agent, what, footprint};
}

// Returns the tree as text: "A(B C)"; open leaves are "A*".
std::string show(const TreeNode& node) {
  std::string text;
  for (const auto& child : node.children) {
    if (!text.empty()) text += " ";
    text += child->agent.path();
    for (uint32_t value : child->values) text += "=" + std::to_string(value);
    if (child->open > 0 && child->children.empty()) text += "*";
    if (!child->children.empty()) text += "(" + show(*child) + ")";
  }
  return text;
}

// A tree whose root was executed by its first branch, A.
struct Fixture {
  WakeupTree tree;
  TreeNode* a = nullptr;
  explicit Fixture(const std::vector<Touch>& what = kWriteX) {
    tree.finish(tree.root(), tree.root());
    a = &tree.add_child(tree.root(), kP, {});
    a->touches = what;
    a->state = TreeNode::State::Executed;
  }
  void insert(WakeupTree::Sequence sequence, const WakeupTree::Sleep& sleep = {}) {
    tree.insert(tree.root(), sleep, std::move(sequence));
  }
};

TEST(WakeupTreeInsertion, AddsWhatNothingElseCovers) {
  Fixture f;
  f.insert({item(kQ, kWriteX), item(kR, kWriteY)});
  EXPECT_EQ(show(f.tree.root()), "1 2(3*)");
  f.insert({item(kR, kWriteX)});
  EXPECT_EQ(show(f.tree.root()), "1 2(3*) 3*");
}

TEST(WakeupTreeInsertion, AnExecutedBranchCoversWhatCanBeginWithIt) {
  Fixture f;
  f.insert({item(kQ, kWriteY), item(kP, kWriteX)});  // A commutes to the front
  EXPECT_EQ(show(f.tree.root()), "1");
  f.insert({item(kQ, kWriteY)});  // A is not in the sequence, but independent of it
  EXPECT_EQ(show(f.tree.root()), "1");
  f.insert({item(kQ, kReadX), item(kP, kWriteX)});  // A comes after a conflicting operation
  EXPECT_EQ(show(f.tree.root()), "1 2(1*)");
}

TEST(WakeupTreeInsertion, WhatEndedTheExecutionCommutesWithNothing) {
  Fixture f;
  f.a->fatal = true;
  f.insert({item(kQ, kWriteY)});
  EXPECT_EQ(show(f.tree.root()), "1 2*");
}

TEST(WakeupTreeInsertion, ASleeperThatCanBeginItMakesItRedundant) {
  Fixture f;
  TreeNode sleeper;
  sleeper.agent = kR;
  sleeper.touches = kWriteY;
  f.insert({item(kQ, kReadX), item(kR, kWriteY)}, {&sleeper});
  EXPECT_EQ(show(f.tree.root()), "1");
  f.insert({item(kQ, touches(16, OpKind::Load)), item(kQ, kReadX), item(kR, kWriteY)}, {&sleeper});
  EXPECT_EQ(show(f.tree.root()), "1 2(2(3*))");
}

TEST(WakeupTreeInsertion, GoesDownAWaitingBranchAndLeavesALeafAlone) {
  Fixture f;
  f.insert({item(kQ, kWriteX), item(kP, kWriteX)});
  // The sequence begins with B too. Only the rest is new, next to A.
  f.insert({item(kQ, kWriteX), item(kR, kWriteX)});
  EXPECT_EQ(show(f.tree.root()), "1 2(1* 3*)");
  // It leads to the waiting leaf 2(1), which is explored anyway.
  f.insert({item(kQ, kWriteX), item(kP, kWriteX), item(kR, kWriteX)});
  EXPECT_EQ(show(f.tree.root()), "1 2(1* 3*)");
  EXPECT_EQ(f.tree.open(), 2u);
}

TEST(WakeupTreeInsertion, ValuesOfOneChoiceStayTogether) {
  Fixture f;
  f.insert({item(kQ, kWriteX)});
  f.tree.add_open(f.tree.add_child(f.tree.root(), kP, {1}));
  EXPECT_EQ(show(f.tree.root()), "1 1=1* 2*");
  // To the right of A's values, all of them sleep. Among themselves they do not.
  WakeupTree::Sleep sleep;
  WakeupTree::add_left_siblings(sleep, *f.tree.root().children[1]);
  EXPECT_TRUE(sleep.empty());
  WakeupTree::add_left_siblings(sleep, *f.tree.root().children[2]);
  EXPECT_EQ(sleep.size(), 2u);
  // Waking one value wakes the agent.
  f.tree.root().children[1]->touches = kWriteY;
  TreeNode reader;
  reader.agent = kR;
  reader.touches = touches(16, OpKind::Load);
  WakeupTree::wake(sleep, reader);
  EXPECT_TRUE(sleep.empty());
}

TEST(WakeupTreeLeaves, AreStartedFromLeftToRightUpToAWindow) {
  Fixture f;
  f.insert({item(kQ, kWriteX), item(kP, kWriteX)});
  f.insert({item(kR, kWriteX)});
  auto started = f.tree.start_leaves(kNoLimit, 1);
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0]->parent->agent, kQ);
  started = f.tree.start_leaves(kNoLimit, 2);  // the first one is Running and fills half of the window
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0]->agent, kR);
  EXPECT_TRUE(f.tree.start_leaves(kNoLimit, 10).empty());
  EXPECT_EQ(f.tree.started().size(), 2u);
  EXPECT_EQ(f.tree.leftmost_leaf()->parent->agent, kQ);
}

TEST(WakeupTreeLeaves, WaitForASiblingWhoseFootprintIsUncertain) {
  Fixture f;
  f.insert({item(kQ, kWriteX, Footprint::Foreseen)});
  f.insert({item(kR, kWriteX)});
  EXPECT_EQ(f.tree.start_leaves(kNoLimit, 10).size(), 1u);
  TreeNode& b = *f.tree.root().children[1];
  b.state = TreeNode::State::Executed;
  f.tree.finish(b, b);
  EXPECT_EQ(f.tree.start_leaves(kNoLimit, 10).size(), 1u);
}

TEST(WakeupTreeLeaves, BeyondTheLimitWait) {
  Fixture f;
  f.tree.add_branch(f.tree.root(), kQ, 2);
  f.tree.add_branch(f.tree.root(), kQ, 2);  // exists already
  f.tree.root().children[1]->footprint = Footprint::Known;
  f.tree.add_branch(f.tree.root(), kR, 1);
  EXPECT_EQ(f.tree.open(), 2u);
  EXPECT_EQ(f.tree.cheapest(), 1u);
  EXPECT_EQ(f.tree.start_leaves(1, 10).size(), 1u);
  EXPECT_EQ(f.tree.start_leaves(2, 10).size(), 1u);
}

TEST(WakeupTreeSaving, KeepsWhatMatters) {
  Fixture f;
  f.insert({item(kQ, kReadX), item(kP, kWriteX)});
  f.insert({item(kR, kWriteX, Footprint::Foreseen)});
  TreeNode& b = *f.tree.root().children[1];
  b.digest = 77;
  b.values = {3, 1};
  b.cost = 2;
  TreeNode& ready = *b.children[0];
  ready.cost = 2;  // never less than its parent's
  ready.state = TreeNode::State::Ready;
  ready.result = std::make_unique<Execution>();
  ready.result->outcome = Exited{};
  ready.result->touches = kWriteY;
  ready.result->choices.push_back({});
  TreeNode& c = *f.tree.root().children[2];
  c.state = TreeNode::State::Running;
  c.fatal = true;
  const std::string shown = show(f.tree.root());
  ByteWriter out;
  f.tree.save(out);

  WakeupTree other;
  ByteReader in(out.bytes());
  ASSERT_TRUE(other.load(in));
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(show(other.root()), shown);
  EXPECT_EQ(other.open(), f.tree.open());
  const TreeNode& b2 = *other.root().children[1];
  EXPECT_EQ(b2.digest, 77u);
  EXPECT_EQ(b2.values, b.values);
  EXPECT_EQ(b2.cost, 2u);
  EXPECT_EQ(b2.touches, kReadX);
  ASSERT_EQ(b2.children[0]->state, TreeNode::State::Ready);
  EXPECT_EQ(b2.children[0]->result->touches, kWriteY);
  EXPECT_TRUE(std::holds_alternative<Exited>(b2.children[0]->result->outcome));
  EXPECT_EQ(other.root().children[0]->state, TreeNode::State::Executed);
  EXPECT_NE(other.root().children[2]->footprint, Footprint::Known);
  EXPECT_TRUE(other.root().children[2]->fatal);
  EXPECT_EQ(other.started(), std::vector<TreeNode*>{other.root().children[2].get()});
}

TEST(WakeupTreeSaving, AFreshTreeHasItsRootToExecute) {
  WakeupTree tree, other;
  ByteWriter out;
  tree.save(out);
  ByteReader in(out.bytes());
  ASSERT_TRUE(other.load(in));
  EXPECT_FALSE(other.finished());
  EXPECT_EQ(other.start_leaves(kNoLimit, 4).size(), 1u);
}

TEST(WakeupTreeSaving, PathsMayBeLong) {
  constexpr int kDepth = 300'000;
  const auto tree = std::make_unique<WakeupTree>();
  TreeNode* node = &tree->root();
  for (int i = 0; i < kDepth; ++i) node = &tree->add_child(*node, kP, {});
  tree->add_open(*node);
  tree->finish(tree->root(), tree->root());
  EXPECT_EQ(tree->start_leaves(kNoLimit, 4), std::vector<TreeNode*>{node});
  ByteWriter out;
  tree->save(out);
  WakeupTree other;
  ByteReader in(out.bytes());
  ASSERT_TRUE(other.load(in));
  EXPECT_EQ(other.started().size(), 1u);
  EXPECT_EQ(other.open(), 1u);
}

}  // namespace
}  // namespace slalom
