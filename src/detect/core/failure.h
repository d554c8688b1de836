// FailureDetector: the target failed by itself, by a failed assertion or a bad access (outcome Faulted).
#pragma once

#include "detect/core/detector.h"

namespace slalom {

struct FailureState {};  // empty: the outcome holds everything

class FailureDetector final : public StatefulDetector<FailureState> {
 public:
  using StatefulDetector::StatefulDetector;
  void on_end(const Outcome& outcome) override;
};

}  // namespace slalom
