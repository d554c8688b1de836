// How sampling strategies choose among those that can run: in one place, since the strategy does it and,
// where it is foreseen (trace/forecast.h), the target does it as well. Plain values, without any memory of
// their own: the priorities of agents belong to whoever asks.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/rng.h"
#include "trace/op.h"

namespace slalom {

// Each is equally probable. What would be drawn at the next choice points is drawn ahead, up to another
// agent, so that those between need not be asked; it holds as long as the same agents can run.
struct UniformPicks {
  static constexpr uint32_t kLongest = std::numeric_limits<uint32_t>::max();

  Rng rng;
  uint32_t left = 0;   // so many choice points whoever was chosen passes
  size_t chosen = 0;   // its position among those that could run,
  size_t among = 0;    // how many these were; 0: nobody is drawn yet
  size_t next = 0;     // who follows
  uint64_t names = 0;  // of those that could run, as given to choose()

  // A position among `count`, who are told from others by `those`. `goes_on`: who was chosen last runs, and
  // could just go on.
  size_t choose(size_t count, bool goes_on, uint64_t those) {
    if (left > 0 && goes_on && those == names) {
      --left;
      return chosen;
    }
    names = those;
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

// The highest priority; whoever executes the step of a change point falls to its value.
struct PctPicks {
  static constexpr uint32_t kMostChanges = 32;
  struct Change {
    uint64_t step = 0;
    int64_t value = 0;
    auto operator<=>(const Change&) const = default;
  };

  Rng rng;
  uint32_t passed = 0, count = 0;
  Change changes[kMostChanges];  // by step

  bool changes_left() const { return passed < count; }
  template <typename Fall>
  void pass(uint64_t step, Fall fall) {
    for (; changes_left() && changes[passed].step <= step; ++passed) fall(changes[passed].value);
  }

  // `priority` of each position; those without one get theirs, above all change values. Independent draws
  // make every order of the agents equally probable, whenever each of them appears.
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

// The highest priority of what is pending; those that conflict with it get new ones.
struct PosPicks {
  Rng rng;
  uint64_t object = 0;  // of what was chosen last
  Effect effect = Effect::None;

  // `priority`, `kind` and `on` (the object) of what is pending, for each position. Whoever is chosen has
  // none afterwards: what it does next is another operation.
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
