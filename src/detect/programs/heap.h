// HeapDetector: use after free and double free. LeakDetector: objects that were not freed before a normal
// end.
//
// Both use the machine's Alloc, Free and HeapUse events, whose `state` says whether the object is live. An
// allocation with the id of an earlier object begins a new object.
#pragma once

#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"

namespace slalom {

struct HeapObject {
  Site alloc;
  Site free;  // no agent if not freed
};

struct HeapState {
  struct Misuse {
    ObjectId object;
    Site use;  // or the second free
    HeapObject history;
  };
  FlatMap<HeapObject> objects;
  FlatMap<uint8_t> seen;  // pairs of places that `misuses` holds already
  std::vector<Misuse> misuses;

  void clear() {
    objects.clear();
    seen.clear();
    misuses.clear();
  }
};

class HeapDetector final : public StatefulDetector<HeapState> {
 public:
  using StatefulDetector::StatefulDetector;
  void on_event(const Event& event) override {
    if (event.op >= OpKind::Alloc && event.op <= OpKind::HeapUse) note(event);
  }
  void on_end(const Outcome& outcome) override;

 private:
  void note(const Event& event);
};

struct LeakState {
  struct Object {
    Site alloc;
    bool freed = false;
  };
  FlatMap<Object> objects;

  void clear() { objects.clear(); }
};

class LeakDetector final : public StatefulDetector<LeakState> {
 public:
  using StatefulDetector::StatefulDetector;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;
};

}  // namespace slalom
