// KernelHeapDetector: kernel memory that is used after it was freed, freed twice, or freed where no object
// begins. It uses the allocations and frees that the machine reports (Alloc, Free), and every access.
//
// Only memory that is freed while the detector watches is known to be free, so earlier objects are judged
// once they are freed. Accesses by the allocator to free memory (lists of free objects, clearing) are not
// uses: they have an allocator function on their stack. The detector ignores objects that RCU readers may
// read although they are free (Free with state 1), and memory that became pages for another purpose (Alloc
// with state 1). An access is a use if it begins within the object, because kernels compare strings by whole
// words and read beyond their end.
//
// Not for programs: their machines report uses themselves, see detect/programs/heap.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"
#include "detect/kernels/kernel_context.h"
#include "detect/kernels/kernel_memory.h"

namespace slalom {

struct KernelHeapState {
  using Moment = KernelMoment;
  struct Object {
    ObjectId address;
    uint64_t size = 0;
    uint32_t cache = 0;     // index in the detector's list of names
    bool live = false;      // false: it is free
    bool readable = false;  // RCU readers may read it while it is free
    Moment alloc, free;
  };
  struct Misuse {
    // DoubleFree also stands for an invalid free, where no object begins.
    BugKind kind = BugKind::UseAfterFree;
    Object object;  // as it was at the misuse
    ObjectId address;
    Moment use;
    uint64_t value = 0;
    uint32_t size = 0;
    uint32_t locks = 0;
    bool writes = false;
  };

  KernelContext context;
  std::vector<Object> objects;
  FlatMap<uint32_t, 2> cells;  // by address / 8: index of the object + 1; 0 if none
  FlatMap<uint8_t> seen;       // misuses already recorded, by place and object
  // One bit per page, shared between pages: set if a page has an object. Most accesses need no other check.
  std::array<uint64_t, 64> pages{};
  std::vector<Misuse> misuses;

  void note_page(uint64_t address) { pages[address >> 18 & 63] |= uint64_t{1} << (address >> 12 & 63); }
  bool may_have_object(uint64_t address) const {
    return (pages[address >> 18 & 63] >> (address >> 12 & 63) & 1) != 0;
  }
  void clear() {
    context.clear();
    objects.clear();
    cells.clear();
    pages.fill(0);
    seen.clear();
    misuses.clear();
  }
};

class KernelHeapDetector final : public StatefulDetector<KernelHeapState> {
 public:
  using StatefulDetector::StatefulDetector;
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  using Moment = KernelHeapState::Moment;
  using Object = KernelHeapState::Object;
  using Misuse = KernelHeapState::Misuse;

  void allocated(const Event& event);
  void freed(const Event& event);
  void add(const Object& object);
  void misused(Misuse misuse);
  bool is_allocator(Place pc);  // whether the place is in an allocator function
  bool in_allocator(Place pc, uint32_t path);
  uint32_t cache_number(std::string_view name);
  Verdict verdict(const Misuse& misuse) const;

  // Caches of what names_ returns, so they are no part of an execution's state.
  std::vector<std::string> caches_;
  FlatMap<uint8_t> allocator_;  // by place: 1 no, 2 yes
};

}  // namespace slalom
