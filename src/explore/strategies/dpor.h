// dpor: dynamic partial-order reduction. One schedule for each way in which dependent operations can be
// ordered.
//
// Fine: optimal DPOR (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014 and JACM 2017): source sets by wakeup
// trees.
//   Needs choice points everywhere. Guarantee: exactly one complete execution per equivalence class, none
//   blocked. Deviations: wakeup sequences come from complete executions only, a whole round of them at a time
//   (see wakeup_tree.h); locks and other blocking operations by the states of their objects (see
//   happens_before.h); an execution that ends in a failure is taken as dependent on all that had not happened
//   yet, which can leave blocked executions.
// Coarse: classic DPOR (Flanagan, Godefroid, POPL 2005) with sleep sets, for choice points anywhere:
// transitions of any length,
//   and therefore all "evil ancestors" of each transition (Landslide, section 5.4.3). Guarantee: all final
//   states and failures that the given choice points can express. May repeat classes.
// Bounded: classic DPOR within a preemption bound, iterated, with the conservative branches that bounds need
// (Coons,
//   Musuvathi, McKinley, OOPSLA 2013) and without sleep sets.
#pragma once

#include <deque>

#include "explore/happens_before.h"
#include "explore/wakeup_tree.h"

namespace slalom {

struct DporOptions {
  enum class Mode : uint8_t { Fine, Coarse, Bounded } mode = Mode::Fine;
  uint32_t limit = std::numeric_limits<uint32_t>::max();  // of preemptions, for Bounded
  // Deliberate mistakes, so that tests can show that they would be noticed.
  enum class Defect : uint8_t { None, MissedRace, WrongSleepSet, ForgottenAncestor } defect = Defect::None;
};

class Dpor : public Strategy {
 public:
  explicit Dpor(DporOptions options = {}) : options_(options) {}
  std::string name() const override;
  Recording recording() const override { return Recording::Footprints; }
  // Fair scheduling makes what may run depend on the whole past: nothing would be independent.
  bool fair() const override { return false; }
  std::optional<Task> begin() override;
  std::unique_ptr<Walker> walker(const Task& task) const override;
  void end(const Task& task, const Execution& execution) override;
  Coverage coverage() const override;
  void save(ByteWriter& out) const override;
  bool load(ByteReader& in) override;

 private:
  using Sleep = WakeupTree::Sleep;
  std::optional<Task> make_task(TreeNode& leaf);
  void take_in(TreeNode& leaf);
  void take_in_ready();
  void enter_path(TreeNode& leaf, const Execution& execution);
  void add_values(TreeNode& node, const Execution& execution, size_t transition);
  void reverse_optimal(size_t e, size_t j);
  void reverse_coarse(size_t e, size_t j);
  void reverse_bounded(size_t e, size_t j, const Execution& execution);
  void branch_bounded(size_t at, AgentId agent, const Execution& execution);
  void branch_at_failure(const Execution& execution);
  uint32_t cost_at(size_t at, AgentId agent, const Execution& execution) const;

  DporOptions options_;
  WakeupTree tree_;
  std::deque<TreeNode*> next_;     // chosen, not yet given out
  std::deque<TreeNode*> running_;  // given out, in order
  uint64_t tasks_ = 0;
  uint64_t executions_ = 0;
  double explored_ = 0;
  uint32_t bound_ = 0;

  // Of the execution being looked at.
  HappensBefore order_;
  std::vector<TreeNode*> path_;  // path_[i]: the node before transition i
  std::vector<Sleep> sleep_;     // sleep_[i]: who sleeps there
  std::vector<uint32_t> races_;
  WakeupTree::Sequence sequence_;
};

}  // namespace slalom
