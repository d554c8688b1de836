// KernelLivelockDetector: a kernel test that goes on to its limit (outcome LimitReached): a flow that has not
// ended by then, or the check after the flows.
//
// Whether it ever would cannot be told from one execution. That others of the same test end is what makes it
// a finding: where none does, the campaign says so instead.
#pragma once

#include <map>

#include "detect/core/detector.h"

namespace slalom {

struct KernelLivelockState {
  struct Calls {
    uint64_t made = 0;
    Site last;
    int64_t number = 0;
    bool inside = false;  // of the last one
  };
  std::map<AgentId, Calls> flows;
};

class KernelLivelockDetector final : public StatefulDetector<KernelLivelockState> {
 public:
  using StatefulDetector::StatefulDetector;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;
};

}  // namespace slalom
