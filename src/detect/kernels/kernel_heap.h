// KernelHeapDetector: memory of a kernel that is used after it was freed, freed twice, or freed where nothing
// begins; from the allocations and frees that the machine tells (Alloc, Free) and every access.
//
// Only what is freed while it watches is known to be free, so memory from before is judged once it is freed.
// What the allocator itself does with free memory (lists of free objects, clearing) is no use: those accesses
// have one of its functions on their stack. Objects that RCU's readers may look at although they are free
// (Free with state 1) and memory that became pages for something else (Alloc with state 1) are let go.
// A use is an access that begins in the object: kernels compare strings by whole words, and read beyond.
//
// Not for programs: their machine tells the uses, see detect/programs/heap.h.
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
    uint32_t cache = 0;     // in the detector's list of names
    bool live = false;      // else it is free
    bool readable = false;  // while it is free
    Moment alloc, free;
  };
  struct Misuse {
    BugKind kind = BugKind::UseAfterFree;  // an invalid free is a DoubleFree of what was never an object
    Object object;                         // as it was then
    ObjectId address;
    Moment use;
    uint64_t value = 0;
    uint32_t size = 0;
    uint32_t locks = 0;
    bool writes = false;
  };

  KernelContext context;
  std::vector<Object> objects;
  FlatMap<uint32_t, 2> cells;  // by address / 8: index of the object + 1; 0: none
  FlatMap<uint8_t> seen;       // misuses by place and object
  // A bit for each page that has an object, or shares its bit with one: most accesses need no more.
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
  bool is_allocator(Place pc);  // a place in one of its functions
  bool in_allocator(Place pc, uint32_t path);
  uint32_t cache_number(std::string_view name);
  Verdict verdict(const Misuse& misuse) const;

  // What these hold follows from names alone, so it is no part of an execution's state.
  std::vector<std::string> caches_;
  FlatMap<uint8_t> allocator_;  // by place: 1 no, 2 yes
};

}  // namespace slalom
