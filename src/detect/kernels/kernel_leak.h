// KernelLeakDetector: memory that flows allocate and nobody frees, where no serial order of their calls
// leaves so much.
//
// What stays after an execution mostly is meant to stay (files that are open, caches). So the machine tells
// at the end how many objects of each place at most stay after the flows' calls ran whole, one after the
// other, in every order (Alloc with state kMayStay); what goes beyond that, by the place of the allocation,
// is reported. Where it tells nothing, nothing is judged. Memory whose free is only put off (RCU) may be
// taken for leaked where calls overlap, so it is off unless asked for.
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
    uint32_t cache = 0;  // in the detector's list of names
    bool live = false;
    KernelMoment alloc;
  };

  KernelContext context;
  std::vector<Object> objects;
  FlatMap<uint32_t> index;     // by address: of the latest object + 1
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
  bool wants_accesses() const override { return true; }  // the calls among them
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  std::vector<std::string> caches_;  // follows from names alone
};

}  // namespace slalom
