// ScheduledRun: an execution of a kernel under test, gone through again as it was written down.
//
// The same states as then, which the hash at its end proves, with whatever tap and places its user likes.
// Where the machine was changed by hand, it goes on with the same switches as far as they are possible.
#pragma once

#include <map>
#include <string>

#include "vm/control/kernel_machine.h"
#include "vm/replay/execution.h"

namespace slalom::vm {

class ScheduledRun final : public Execution {
 public:
  // `machine` has just made the execution that the course is of; both must outlive the run, and nobody else
  // may use the machine. The run stands at its begin.
  ScheduledRun(KernelMachine& machine, const Course& course);
  bool leads_to_the_same_end();  // goes through it once; stands at its begin again

  Pc& pc() override { return machine_.pc(); }
  PcStop forward(uint64_t instructions) override;  // its end is PcStop::Exit
  // Goes on to where the next instruction is executed, and says by which CPU. None: the flows are done.
  std::optional<unsigned> next_cpu();
  // How many instructions there still are of the check after the flows, once these are done: all CPUs take
  // turns.
  uint64_t check_left() const;
  Pc::Checkpoint take() override;
  void restore(Pc::Checkpoint id) override;
  void drop(Pc::Checkpoint id) override;
  void fork() override {}
  std::string end_sentence() const override { return "The schedule ends here"; }

 private:
  std::optional<PcStop> go(uint64_t most);
  void go_to_begin();

  KernelMachine& machine_;
  const Course& course_;
  size_t next_ = 0;                           // of the legs; the one that is not finished yet
  size_t end_ = 0;                            // what comes after the last instruction is no part of the run
  std::map<Pc::Checkpoint, size_t> next_at_;  // of each checkpoint
};

}  // namespace slalom::vm
