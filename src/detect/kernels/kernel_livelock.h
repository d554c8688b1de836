// KernelLivelockDetector: a kernel test that runs to its limit (outcome LimitReached), in a flow that has not
// ended or in the check after the flows.
//
// One execution cannot show whether the test would ever end. It is a finding because other executions of the
// same test end. If none does, the campaign says so instead.
#pragma once

#include <map>

#include "detect/core/detector.h"

namespace slalom {

struct KernelLivelockState {
  struct Calls {
    uint64_t made = 0;
    Site last;
    int64_t number = 0;
    bool inside = false;  // the last call has not returned
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
