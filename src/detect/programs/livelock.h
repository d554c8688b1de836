// LivelockDetector: judges executions that reached the step limit (outcome LimitReached): a livelock, a spin
// without a yield, a long program, or an unfair schedule.
//
// The detector uses only the recent past: two windows, together the last quarter to half of the execution.
//
// Good samaritan violation (CHESS, section 5.4.2): one agent ran alone and never yielded while others could
// run. It waits: it reads the same values at the same places again and again, and makes no progress.
// Livelock: every agent that can run did run (the schedule was fair to them). They yielded, or repeated only
// what they had done before. If an enabled agent never ran, the schedule is unfair, and the detector reports
// nothing.
//
// Progress is an operation with a new combination of place, object and value. There is one exception: a plain
// variable whose values advance by a constant stride is a counter. A waiting loop may count its rounds, so a
// counter is progress only if nothing shows that the loop waits. Without yields, an atomic read (or a
// trylock) that returns the same value each time shows it. A loop that yields makes progress only if it
// reaches new addresses.
//
// Accepted misses: a loop that polls a plain variable and counts in memory; a loop that polls more than
// kMostPolled values; a loop that keeps random numbers in memory; a loop that polls under a lock while no
// other thread runs, in a program whose memory accesses are not seen. Such executions still count as cut off.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"

namespace slalom {

struct LivelockState {
  struct Repeated {
    Site first;  // in the window
    uint64_t times = 0;
  };
  // The values of one place and object, to recognise counters.
  struct Stride {
    uint64_t value = 0;
    uint64_t stride = 0;
    uint32_t same = 0;  // times in a row that the value advanced by this stride
  };
  // Distinct items, with the number of times of each.
  struct Tally {
    FlatMap<uint32_t> index;  // by a hash of the item: position in `all`, plus one
    std::vector<Repeated> all;

    Repeated* find(uint64_t what) {
      const uint32_t* known = index.find(what);
      return known == nullptr ? nullptr : &all[*known - 1];
    }
    void add(uint64_t what, const Site& site) {
      all.push_back({site, 1});
      index[what] = static_cast<uint32_t>(all.size());
    }
    void clear() {
      index.clear();
      all.clear();
    }
  };
  struct Window {
    uint64_t start = 0;
    FlatMap<uint64_t> agents;  // number of yields of each agent
    Tally yields;              // by agent and place
    Tally done;                // by agent, place, operation, object and value; at most kMaxDone
    FlatMap<Stride> places;    // by agent, place, operation and object
    bool counted = false;      // a counter advanced
    bool waited = false;       // an agent waited until a time limit; others could have run meanwhile

    bool full() const { return done.all.size() == kMaxDone; }
    void clear() {
      start = 0;
      agents.clear();
      yields.clear();
      done.clear();
      places.clear();
      counted = waited = false;
    }
  };
  // An agent that does more different things than this in a window counts as making progress.
  static constexpr size_t kMaxDone = 1024;
  static constexpr uint64_t kFirstWindow = 16;

  Window older;
  Window newer;
  uint64_t next_window = kFirstWindow;
  Site last;
  Step last_new;        // latest operation that was done for the first time
  Step last_new_place;  // latest operation at a new address

  void clear() {
    older.clear();
    newer.clear();
    next_window = kFirstWindow;
    last = {};
    last_new = last_new_place = {};
  }
};

class LivelockDetector final : public StatefulDetector<LivelockState> {
 public:
  using StatefulDetector::StatefulDetector;
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  void note(Site site, ObjectId object, uint64_t value);
  bool counts(const Site& site, ObjectId object, uint64_t value);
  bool is_old(Step step) const;
  bool polls(bool atomically) const;
  bool sees_memory() const;
  void advance(uint64_t step);
  void report_silent(const LimitReached& limit);
  void report_loop(BugKind kind, bool at_yields);
};

}  // namespace slalom
