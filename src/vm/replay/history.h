// History: checkpoints of the past of an execution, from which any place of it can be reached again.
//
// Close to each other near the present, further apart in the distant past; a bounded number. The first one,
// where history begins, is never given up.
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "vm/replay/execution.h"

namespace slalom::vm {

// A state of an execution. Between two instructions there can be two of them: before and after the machine
// has delivered interrupts and passed the turn on. A CPU that stops at a place has the second.
struct Position {
  uint64_t executed = 0;  // instructions of all CPUs
  bool delivered = false;

  auto operator<=>(const Position&) const = default;
};

class History {
 public:
  History(Execution& execution, unsigned most) : execution_(execution), most_(most) {}
  ~History() { clear(); }
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void begin(Position here);  // forgets all, and begins here
  void clear();
  void add(Position here);
  Position first() const { return checkpoints_.begin()->first; }
  Position latest(Position place) const;  // of the checkpoints at or before that place
  void restore(Position checkpoint);

  size_t size() const { return checkpoints_.size(); }

 private:
  void thin_out(Position here);

  Execution& execution_;
  unsigned most_;
  std::map<Position, Pc::Checkpoint> checkpoints_;
};

}  // namespace slalom::vm
