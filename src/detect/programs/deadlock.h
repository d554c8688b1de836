// DeadlockDetector: nothing can run, and not all agents have ended (outcome Deadlocked).
//
// A cycle of agents that wait for each other explains a hang; every cycle is one verdict. Without one, what
// agents wait for is listed, leaving out those that only wait for another waiting agent. A hang without a
// cycle in which a condition variable was signalled too early is a lost wakeup instead: one class reports
// both kinds, so that exactly one of them is said; with lost wakeups off it is a deadlock again.
#pragma once

#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"
#include "detect/programs/lost_wakeup.h"

namespace slalom {

struct DeadlockState {
  FlatMap<Site> taken;   // by lock and agent: where the agent took it last
  FlatMap<Site> parked;  // by agent: where it last began to wait for a condition variable or barrier
  UnheardSignals unheard;

  void clear() {
    taken.clear();
    parked.clear();
    unheard.clear();
  }
};

class DeadlockDetector final : public StatefulDetector<DeadlockState> {
 public:
  struct Reports {
    bool deadlocks = true;
    bool lost_wakeups = true;
  };
  explicit DeadlockDetector(const Names& names) : StatefulDetector(names) {}
  DeadlockDetector(const Names& names, Reports reports) : StatefulDetector(names), reports_(reports) {}

  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  using Waiting = Deadlocked::Waiting;
  // A waiting agent and, of those it waits for, the one that matters here; none where nobody in particular.
  struct Wait {
    const Waiting* waiting;
    AgentId holder;
  };

  void report_cycle(const Deadlocked& deadlock, std::vector<Wait> cycle);
  void report_roots(const Deadlocked& deadlock);
  bool report_lost_wakeups(const Deadlocked& deadlock);
  std::string wait_text(const Wait& wait) const;  // "a:2 waits for m held by b", as in titles
  void add_evidence(const Wait& wait, Verdict& verdict) const;
  std::string all_waits(const Deadlocked& deadlock) const;
  Site parked_at(const Waiting& waiting) const;

  Reports reports_;
};

}  // namespace slalom
