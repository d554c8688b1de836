// History: checkpoints of an execution's past, from which any position in it can be reached again.
//
// The checkpoints are close together near the present and further apart in the distant past. Their number is
// bounded. The first one, where history begins, is always kept.
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "vm/replay/execution.h"

namespace slalom::vm {

// A state of an execution. There can be two between two instructions: before and after the machine has
// delivered interrupts and changed turns. A CPU that stops at a place is in the second.
struct HistoryPoint {
  uint64_t executed = 0;  // instructions of all CPUs
  bool delivered = false;

  auto operator<=>(const HistoryPoint&) const = default;
};

class History {
 public:
  History(Execution& execution, unsigned most) : execution_(execution), most_(most) {}
  ~History() { clear(); }
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  void begin(HistoryPoint here);  // drops all checkpoints and begins a new history
  void clear();
  void add(HistoryPoint here);
  HistoryPoint first() const { return checkpoints_.begin()->first; }
  HistoryPoint latest(HistoryPoint place) const;  // of the checkpoints at or before this place
  void restore(HistoryPoint checkpoint);

  size_t size() const { return checkpoints_.size(); }

 private:
  void thin_out(HistoryPoint here);

  Execution& execution_;
  unsigned most_;
  std::map<HistoryPoint, Pc::Checkpoint> checkpoints_;
};

}  // namespace slalom::vm
