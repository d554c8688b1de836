// Fairness: CHESS's fair scheduling (section 4.3; Musuvathi and Qadeer, PLDI 2008, Algorithm 1).
//
// An agent that yields where it has yielded before gets a lower priority than the agents it starved: those
// that were enabled, or that it disabled, since its last yield and did not run. Programs whose threads yield
// when they cannot go on thus end under every schedule that is left. Nothing is lost that shows without an
// agent yielding twice at one place. (The paper counts instead: it looks at every k-th yield of an agent, and
// can lose what shows after more than k, in programs without loops too.) Programs that never yield are not
// restricted at all.
#pragma once

#include <vector>

#include "explore/agent_set.h"
#include "trace/choice.h"

namespace slalom {

class Fairness {
 public:
  void clear() { *this = Fairness(); }
  bool restricts() const { return yielded_; }
  bool concerns(const ChoicePoint& point) const { return yielded_ || point.kind == ChoiceKind::Yielded; }
  // Reports what is enabled at a scheduling choice point and who ran last; removes options that would be
  // unfair.
  void filter(const ChoicePoint& point, std::vector<Option>& options);
  uint64_t hash() const { return yielded_ ? hash_all() : 0; }

 private:
  struct PerAgent {
    AgentSet starved_by_priority;  // agents that must run before this one: P(this, *)
    AgentSet scheduled;            // S: ran since this one's last yield
    AgentSet enabled;              // E: enabled ever since this one's last yield
    AgentSet disabled;             // D: disabled by this one since its last yield
    std::vector<Place> yields;     // where it went on after each
  };
  static bool yields_again(PerAgent& agent, Place place);
  uint64_t hash_all() const;

  AgentTable table_;
  std::vector<PerAgent> agents_;
  AgentSet enabled_before_;
  bool yielded_ = false;  // until somebody yields there is nothing to do
};

}  // namespace slalom
