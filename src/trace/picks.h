// The random choices of sampling strategies. The strategy uses this code, and so does the target where it
// follows a forecast (trace/forecast.h). Plain values without dynamic memory: the caller owns the agents'
// priorities.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/rng.h"
#include "trace/op.h"

namespace slalom {

// Each option is equally probable. The choices for the next choice points are drawn ahead, until one falls on
// another agent, so that the machine need not ask at the choice points between. They hold as long as the same
// agents can run.
struct UniformPicks {
  static constexpr uint32_t kLongest = std::numeric_limits<uint32_t>::max();

  Rng rng;
  uint32_t left = 0;        // number of further choice points that keep the chosen agent
  size_t chosen = 0;        // position of the chosen agent among the options
  size_t among = 0;         // number of options at that choice; 0: nothing is drawn yet
  size_t next = 0;          // position of the agent to choose next
  uint64_t option_set = 0;  // identifies the set of options; as given to choose()

  // Returns a position among `count` options. `enabled_set` identifies the set of options. `goes_on`: the
  // last chosen agent ran, and could go on.
  size_t choose(size_t count, bool goes_on, uint64_t enabled_set) {
    if (left > 0 && goes_on && enabled_set == option_set) {
      --left;
      return chosen;
    }
    option_set = enabled_set;
    if (count == 1) {
      left = kLongest;
      among = 0;
      return chosen = 0;
    }
    chosen = goes_on && count == among ? next : rng.below(count);
    among = count;
    left = 0;
    while ((next = rng.below(count)) == chosen) ++left;
    return chosen;
  }
};

inline constexpr int64_t kNoPriority = 0;

// Chooses the highest priority. An agent that executes the step of a change point gets the priority `value`.
struct PctPicks {
  static constexpr uint32_t kMostChanges = 32;
  struct Change {
    uint64_t step = 0;
    int64_t value = 0;
    auto operator<=>(const Change&) const = default;
  };

  Rng rng;
  uint32_t passed = 0, count = 0;
  Change changes[kMostChanges];  // ordered by step

  bool changes_left() const { return passed < count; }
  template <typename Fall>
  void pass(uint64_t step, Fall fall) {
    for (; changes_left() && changes[passed].step <= step; ++passed) fall(changes[passed].value);
  }

  // `priority(i)` is the priority of position i. An agent without one gets a random one, above all change
  // values. Independent draws make every order of the agents equally probable, however late each agent
  // appears.
  template <typename Priority>
  size_t choose(size_t among, Priority priority) {
    size_t chosen = 0;
    int64_t best = std::numeric_limits<int64_t>::min();
    for (size_t i = 0; i < among; ++i) {
      int64_t& own = priority(i);
      if (own == kNoPriority) own = static_cast<int64_t>(rng.next() >> 2) + (int64_t{1} << 62);
      if (own <= best) continue;
      best = own;
      chosen = i;
    }
    return chosen;
  }
};

// Chooses the pending operation with the highest priority. Operations that conflict with it get new
// priorities.
struct PosPicks {
  Rng rng;
  uint64_t object = 0;  // object of the operation chosen last
  Effect effect = Effect::None;

  // `priority(i)`, `kind(i)` and `on(i)` (the object) describe the pending operation of position i. The
  // caller clears the priority of the chosen agent afterwards: its next operation is another one.
  template <typename Priority, typename Kind, typename On>
  size_t choose(size_t among, Priority priority, Kind kind, On on) {
    size_t chosen = 0;
    uint64_t best = 0;
    for (size_t i = 0; i < among; ++i) {
      int64_t& own = priority(i);
      if (own == kNoPriority || (on(i) == object && conflict(slalom::effect(kind(i)), effect)))
        own = static_cast<int64_t>(rng.next() | 1);
      if (static_cast<uint64_t>(own) <= best) continue;
      best = static_cast<uint64_t>(own);
      chosen = i;
    }
    object = on(chosen);
    effect = slalom::effect(kind(chosen));
    return chosen;
  }
};

}  // namespace slalom
