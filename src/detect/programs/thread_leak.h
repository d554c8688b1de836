// ThreadLeakDetector: threads that still exist when the program ends normally, neither joined nor detached.
// The end may cut them off anywhere.
//
// The machine reports each such thread in a Note at the end whose text is kLeakedThread. The verdict is a
// suspicion, because many programs do this on purpose.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "detect/core/detector.h"

namespace slalom {

struct ThreadLeakState {
  std::map<AgentId, Site> started;
  std::vector<AgentId> leaked;

  void clear() {
    started.clear();
    leaked.clear();
  }
};

class ThreadLeakDetector final : public StatefulDetector<ThreadLeakState> {
 public:
  using StatefulDetector::StatefulDetector;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;
};

}  // namespace slalom
