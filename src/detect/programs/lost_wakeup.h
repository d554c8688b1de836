// Lost wakeups: a signal came before its waiter, which then waits for ever.
//
// LostSignals is the part of DeadlockDetector's state that records signals that woke no agent.
// DeadlockDetector decides whether the program hangs because of such a signal.
#pragma once

#include <optional>

#include "base/flat_map.h"
#include "detect/core/detector.h"

namespace slalom {

class LostSignals {
 public:
  void on_event(const Event& event);
  // Returns the latest signal of the condition variable that woke no agent; empty if there is none. Ignores
  // signals of the waiter itself: in no order of events could they wake it.
  std::optional<Site> latest(ObjectId condvar, AgentId waiter) const;
  void clear() { signals_.clear(); }

 private:
  struct LostSignal {
    ObjectId condvar;
    Site site;
  };
  FlatMap<LostSignal> signals_;  // the last one of each condition variable and agent
};

// `wait` is the place where the waiter began to wait.
Verdict lost_wakeup(const Names& names, ObjectId condvar, const Site& signal, const Site& wait);

}  // namespace slalom
