// DeadlockDetector: no agent can run, and some agents have not ended (outcome Deadlocked).
//
// A cycle of agents that wait for each other explains a hang. Every cycle is one verdict. If there is no
// cycle, the verdict lists what agents wait for, without those that only wait for another waiting agent. If
// there is no cycle, but a condition variable was signalled too early, the hang is a lost wakeup instead. One
// class reports both kinds, so that it reports exactly one of them. If lost wakeups are off, it reports a
// deadlock.
#pragma once

#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"
#include "detect/programs/lost_wakeup.h"

namespace slalom {

struct DeadlockState {
  FlatMap<Site> taken;   // by lock and agent: where the agent last took the lock
  FlatMap<Site> parked;  // by agent: where it last began to wait for a condition variable or barrier
  LostSignals lost_signals;

  void clear() {
    taken.clear();
    parked.clear();
    lost_signals.clear();
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
  // A waiting agent, and the agent that it waits for and that matters here (none if no single agent is
  // responsible).
  struct Wait {
    const Waiting* waiting;
    AgentId holder;
  };

  void report_cycle(const Deadlocked& deadlock, std::vector<Wait> cycle);
  void report_roots(const Deadlocked& deadlock);
  bool report_lost_wakeups(const Deadlocked& deadlock);
  std::string wait_text(const Wait& wait) const;  // "a:2 waits for m held by b", for titles
  void add_evidence(const Wait& wait, Verdict& verdict) const;
  std::string all_waits(const Deadlocked& deadlock) const;
  Site parked_at(const Waiting& waiting) const;

  Reports reports_;
};

}  // namespace slalom
