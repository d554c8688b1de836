// ThreadLeakDetector: threads that are still there when the program ends normally, neither joined nor
// detached: what they do then is cut off anywhere.
//
// The machine says who, in a Note at the end whose text is kLeakedThread. A suspicion: many programs mean it.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "detect/core/detector.h"

namespace slalom {

inline constexpr std::string_view kLeakedThread = "leaked thread";

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
