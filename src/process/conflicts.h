// Conflicts: finds the plain accesses at which the search should switch: accesses of two threads to the same
// memory, one of them a write. Takes one execution's accesses in order.
#pragma once

#include "base/flat_map.h"
#include "preload/protocol.h"
#include "trace/feedback.h"

namespace slalom {

class Conflicts {
 public:
  void clear() {
    touched_.clear();
    lives_.clear();
    feedback_.places.clear();
  }
  void add(const preload::Record& access);  // its pc becomes the place
  void prefetch(const preload::Record& access) const { touched_.prefetch(access.object / kGranule); }
  void add_event(const preload::Record& event) {
    if (event.op == OpKind::Spawn || event.op == OpKind::Exit) begin_or_end(event);
  }
  const Feedback& feedback() const { return feedback_; }

 private:
  static constexpr uint64_t kGranule = 8;
  // The agents that accessed a granule of memory, and where: the last write, and the last read since.
  struct Touched {
    uint32_t writer = 0, reader = 0;  // index + 1; 0 if none
    uint64_t write_pc = 0, read_pc = 0;
    uint64_t write_step = 0, read_step = 0;
  };
  struct Life {  // life of a thread
    uint64_t born = 0;
    bool ended = false;
  };
  void begin_or_end(const preload::Record& event);  // notes the start or end of a thread's life
  void learn(uint64_t pc);
  Life& life(uint32_t agent) {
    if (agent >= lives_.size()) lives_.resize(agent + 1);
    return lives_[agent];
  }

  FlatMap<Touched, 3> touched_;
  std::vector<Life> lives_;
  Feedback feedback_;
};

}  // namespace slalom
