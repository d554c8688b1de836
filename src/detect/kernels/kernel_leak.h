// KernelLeakDetector: memory that flows allocate and never free, beyond what any serial order of their calls
// leaves.
//
// Most memory that stays after an execution is meant to stay (open files, caches). At the end, the machine
// therefore reports, for each place of allocation, how many objects stay at most if the flows' calls run
// whole, one after the other, in any order (Alloc with state kMayStay). The detector reports what exceeds
// that number. If the machine reports no such numbers, the detector reports nothing. Where calls overlap,
// memory whose free is only deferred (RCU) may look leaked, so the detector is off by default.
#pragma once

#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"
#include "detect/kernels/kernel_memory.h"

namespace slalom {

struct KernelLeakState {
  struct Object {
    ObjectId address;
    uint64_t size = 0;
    uint32_t cache = 0;  // index in the detector's list of names
    bool live = false;
    KernelMoment alloc;
  };

  KernelContext context;
  std::vector<Object> objects;
  FlatMap<uint32_t> index;     // by address: index of the latest object + 1
  FlatMap<uint64_t> may_stay;  // by place of allocation
  bool judges = false;

  void clear() {
    context.clear();
    objects.clear();
    index.clear();
    may_stay.clear();
    judges = false;
  }
};

class KernelLeakDetector final : public StatefulDetector<KernelLeakState> {
 public:
  using StatefulDetector::StatefulDetector;
  bool wants_accesses() const override { return true; }  // for the calls among them
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  std::vector<std::string> caches_;  // a cache of what names_ returns
};

}  // namespace slalom
