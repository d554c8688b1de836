// Knowledge: what executions have shown, and later executions should know. A plain value. merge() is
// commutative, associative and idempotent: a search that merges at fixed points gets the same knowledge for
// any number of workers.
//
// Learner: collects the knowledge of one execution from its accesses and events, like a detector. Learners
// are in learn/. A machine may also collect knowledge itself, if it can do so faster (EndFacts::knowledge).
#pragma once

#include <vector>

#include "base/strong.h"
#include "trace/sink.h"

namespace slalom {

struct Knowledge {
  // All lists are sorted.
  // Instructions by which agents communicate, and atomic operations that nothing else orders. They should be
  // choice points besides those of the policy.
  std::vector<Place> places;
  std::vector<Place> racing;   // accesses of data races
  std::vector<Place> atomics;  // all atomic operations, if they were collected
  bool guessed = false;  // the machine inferred from an agent's behaviour that it waits (a CPU that spins)

  void merge(const Knowledge& other);
  void add_race(const Verdict& verdict);       // ignored unless it is a data race
  std::vector<Place> ordered_atomics() const;  // atomic operations that other synchronisation always orders
  void clear();
  bool operator==(const Knowledge&) const = default;
};

// Adds `more` to `places`; both are sorted. Returns false if nothing is new.
bool merge_places(std::vector<Place>& places, const std::vector<Place>& more);

class Learner : public EventSink {
 public:
  virtual void reset() = 0;  // a new execution begins
  // Of the execution so far. Valid until the next call to the learner.
  virtual const Knowledge& knowledge() = 0;
};

}  // namespace slalom
