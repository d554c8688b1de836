// NaturalRun: runs a machine with its natural turns and its console, as `slalom boot` does.
//
// Text that the user types is the only input that does not follow from the machine's state. It is kept with
// its position, so that going over the same stretch again types it again. The guest's output is shown once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vm/replay/execution.h"

namespace slalom::vm {

class NaturalRun final : public Execution {
 public:
  explicit NaturalRun(Pc& pc) : pc_(pc), furthest_(pc.executed()) {}

  Pc& pc() override { return pc_; }
  PcStop forward(uint64_t instructions) override;
  Pc::Checkpoint take() override;
  void restore(Pc::Checkpoint id) override;
  void drop(Pc::Checkpoint id) override;
  void fork() override;

  // The user can only type at the end of what has been executed so far.
  bool at_furthest() const { return pc_.executed() >= furthest_; }
  void type(const std::string& text);  // takes effect when the machine goes on
  std::string take_output();           // output that was printed for the first time

 private:
  struct Typed {
    uint64_t at;  // as Pc::executed()
    std::string text;
  };
  Pc& pc_;
  uint64_t furthest_;  // as Pc::executed()
  std::vector<Typed> typed_;
  size_t next_typed_ = 0;  // index in typed_ of the first text not yet given to the machine
  std::map<Pc::Checkpoint, size_t> next_typed_at_;  // by checkpoint
  std::string output_;
};

}  // namespace slalom::vm
