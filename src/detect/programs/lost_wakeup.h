// Lost wakeups: a signal that came before its waiter, which then waits for ever.
//
// UnheardSignals is the part of DeadlockDetector's state that remembers signals which woke nobody. It only
// tells that such a signal exists; whether the program hangs for it is for DeadlockDetector to judge.
#pragma once

#include <optional>

#include "base/flat_map.h"
#include "detect/core/detector.h"

namespace slalom {

class UnheardSignals {
 public:
  void on_event(const Event& event);
  // The latest signal of the condition variable that woke nobody. The waiter's own do not count: no order of
  // events makes them wake it.
  std::optional<Site> latest(ObjectId condvar, AgentId waiter) const;
  void clear() { signals_.clear(); }

 private:
  struct Unheard {
    ObjectId condvar;
    Site site;
  };
  FlatMap<Unheard> signals_;  // the last one of each condition variable and agent
};

// `wait` is where the waiter began to wait.
Verdict lost_wakeup(const Names& names, ObjectId condvar, const Site& signal, const Site& wait);

}  // namespace slalom
