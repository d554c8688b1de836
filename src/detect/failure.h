// FailureDetector: the target broke by itself, by a failed assertion or a bad access (outcome Faulted).
#pragma once

#include "detect/detector.h"

namespace slalom {

struct FailureState {
  Step last;  // the latest step seen: that of the fault, which is no event of its own
};

class FailureDetector final : public StatefulDetector<FailureState> {
 public:
  using StatefulDetector::StatefulDetector;
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override { state_.last = event.step; }
  void on_end(const Outcome& outcome) override;
};

}  // namespace slalom
