// ScheduledRun: replays an execution of a kernel under test from its recorded Course.
//
// It passes through the same states as the original, whatever tap and places are set; the hash at the end
// proves that. After a change of the machine by hand, it goes on with the same switches as far as possible.
#pragma once

#include <map>
#include <string>

#include "vm/control/kernel_machine.h"
#include "vm/replay/execution.h"

namespace slalom::vm {

class ScheduledRun final : public Execution {
 public:
  // `machine` must just have made the execution that the course describes. Both must outlive the run, and no
  // other code may use the machine meanwhile. The run stands at its beginning.
  ScheduledRun(KernelMachine& machine, const Course& course);
  bool leads_to_the_same_end();  // replays the whole run once, then stands at its beginning again

  Pc& pc() override { return machine_.pc(); }
  PcStop forward(uint64_t instructions) override;  // returns PcStop::Exit at the end
  // Goes on to the next instruction and returns the CPU that will execute it; empty if the flows are done.
  std::optional<unsigned> next_cpu();
  // The number of remaining instructions of the check after the flows. All CPUs take turns during the check.
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
  size_t next_ = 0;                           // the first leg that is not finished
  size_t end_ = 0;                            // legs behind the last instruction are not part of the run
  std::map<Pc::Checkpoint, size_t> next_at_;  // by checkpoint
};

}  // namespace slalom::vm
