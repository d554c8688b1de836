// dpor: dynamic partial-order reduction. It executes one schedule for each way in which dependent operations
// can be ordered.
//
// Fine: optimal DPOR with source sets by wakeup trees (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014 and JACM
// 2017). Needs choice points everywhere.
// Guarantee: exactly one complete execution per equivalence class, and no blocked executions.
// Deviations: leaves are executed ahead of their turn, and results are taken in from left to right
// (wakeup_tree.h). Locks and other blocking operations are handled by the states of their objects
// (happens_before.h). Blocked executions remain possible after a failure, which counts as dependent on
// everything that had not happened yet, and where a reversed compare-and-swap turns out not to write. If a
// target makes data choices, dpor continues in Coarse mode from the first execution that meets one.
//
// Coarse: source sets without wakeup trees. Choice points may be anywhere, and transitions may have any
// length, so it needs all "evil ancestors" of each transition (Landslide, section 5.4.3).
// Guarantee: all final states and failures that the given choice points can express. May leave blocked
// executions.
//
// Bounded: classic DPOR (Flanagan, Godefroid, POPL 2005) within an iterated preemption bound, with the
// conservative branches that bounds need (Coons, Musuvathi, McKinley, OOPSLA 2013) and without sleep sets.
// Guarantee: all final states and failures within the bound. May repeat classes.
#pragma once

#include <deque>

#include "explore/happens_before.h"
#include "explore/wakeup_tree.h"

namespace slalom {

struct DporOptions {
  enum class Mode : uint8_t { Fine, Coarse, Bounded } mode = Mode::Fine;
  uint32_t limit = std::numeric_limits<uint32_t>::max();  // of preemptions, for Bounded
  // Deliberate mistakes. Tests check that they would be noticed.
  enum class Defect : uint8_t { None, MissedRace, WrongSleepSet, ForgottenAncestor } defect = Defect::None;
};

class Dpor : public Strategy {
 public:
  explicit Dpor(DporOptions options = {}) : options_(options), mode_(options.mode) {}
  std::string name() const override;
  Recording recording() const override { return Recording::Footprints; }
  // Under fair scheduling, the enabled agents depend on the whole past, so no operations would be
  // independent.
  bool fair() const override { return false; }
  void next_round(size_t tasks) override { window_ = tasks; }
  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 private:
  using Sleep = WakeupTree::Sleep;
  std::optional<Task> make_task(TreeNode& leaf);
  void take_in(TreeNode& leaf, const Execution& execution);
  void take_in_ready();
  bool has_values() const;
  void start_again();
  void withdraw(TreeNode& leaf);
  void correct(TreeNode& leaf, std::span<const Touch> foreseen);
  void reinsert(TreeNode& parent, const std::vector<WakeupTree::Steps>& sequences);
  void enter_path(TreeNode& leaf, const Execution& execution);
  void add_values(TreeNode& node, const Execution& execution, size_t transition);
  void reverse(size_t e, size_t j, const Execution& execution);
  void reverse_optimal(size_t e, size_t j);
  void reverse_coarse(size_t e, size_t j);
  bool ends_early(const Execution& execution) const;
  size_t before_end() const;
  void reverse_bounded(size_t e, AgentId agent, const Execution& execution);
  void branch_bounded(size_t at, AgentId agent, const Execution& execution);
  void branch_at_end(const Execution& execution);
  uint32_t cost_at(size_t at, AgentId agent, const Execution& execution) const;

  DporOptions options_;
  DporOptions::Mode mode_;  // Fine becomes Coarse at the first data choice
  WakeupTree tree_;
  WakeupTree retired_;             // the tree before that change
  size_t stale_ = 0;               // number of running leaves that belong to the retired tree
  std::deque<TreeNode*> next_;     // chosen, not yet handed out
  std::deque<TreeNode*> running_;  // handed out, in order
  size_t window_ = 64;             // how many leaves may be executed ahead
  uint64_t tasks_ = 0;
  uint64_t executions_ = 0;
  double explored_ = 0;
  uint32_t bound_ = 0;

  // State of the execution that is being taken in.
  HappensBefore order_;
  std::vector<TreeNode*> path_;  // path_[i]: the node before transition i
  std::vector<Sleep> sleep_;     // sleep_[i]: the nodes asleep there
  std::vector<uint32_t> races_;
  WakeupTree::Sequence sequence_;
  std::vector<size_t> initials_;
  std::vector<Touch> foreseen_;  // sequence_'s last item refers to it
};

}  // namespace slalom
