// Heap: where the blocks that a test body allocates lie, so that they have the same addresses in every
// execution with the same schedule, in every process.
//
// Each thread of the body has a region of its own and takes its blocks from there, one after the other;
// nothing is used again before the execution has ended, so a use of a freed block is always seen as such (and
// the ABA of a block that is freed and allocated again is seen as the use after free that it is). Blocks that
// are still there after a normal end may belong to somebody who outlives executions: they keep their memory.
// Not for what is allocated outside executions: that is libc's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slalom::checking {

inline constexpr uint64_t kHeap = 0x600000000000;
inline constexpr uint64_t kHeapRegion = uint64_t{1} << 26;
inline constexpr uint32_t kHeapRegions = 256;

class Heap {
 public:
  bool prepare();  // false: the system gives no memory

  // Whether blocks are taken from here; else from libc.
  void set_on(bool on) { on_ = on; }
  bool on() const { return on_; }
  // A new execution. Blocks that are left over from the last one keep their memory if it ended normally.
  void begin(bool ended_normally);

  void* allocate(uint32_t agent, size_t size, size_t alignment);  // null: there is no room
  static bool owns(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer) - kHeap < kHeapRegion * kHeapRegions;
  }
  static size_t size_of(const void* block) { return header(block).size; }
  static bool is_live(const void* block) { return header(block).state == Live; }
  void free(void* block);

  // While a first execution takes its blocks from libc, which would suffer if it used what it has freed,
  // these are kept until it is over.
  void begin_keeping() { keeps_ = true; }
  void end_keeping();
  bool keeps() const { return keeps_; }
  void keep(void* block);

  // What was freed before an access is known to whoever reads what an execution told, in that order: it marks
  // blocks, and asks in which of those an address lies; null: in none.
  void mark_freed(const void* block);
  const void* freed_block(const void* address) const;
  uint64_t live() const { return live_; }
  // The address without what blocks of earlier executions have kept: the same in every execution.
  uint64_t stable(uint64_t address) const { return address - first_[(address - kHeap) / kHeapRegion]; }

 private:
  enum State : uint32_t { Live = 1, Freed = 2 };
  struct Header {
    uint64_t size;
    State state;
    uint32_t unused;
  };
  static_assert(sizeof(Header) == 16);
  static Header& header(const void* block) { return static_cast<Header*>(const_cast<void*>(block))[-1]; }
  uint8_t* shadow(const void* address) const {
    return shadow_ + (reinterpret_cast<uint64_t>(address) - kHeap) / 16;
  }

  uint8_t* shadow_ = nullptr;          // for 16 bytes each: are they freed, and does a block begin there?
  uint64_t first_[kHeapRegions] = {};  // of each region: where this execution's blocks begin
  uint64_t used_[kHeapRegions] = {};
  uint32_t regions_used_ = 0;  // all in use lie below
  uint64_t live_ = 0;
  bool on_ = false;
  bool keeps_ = false;
  void** kept_ = nullptr;
  size_t kept_count_ = 0, kept_room_ = 0;
};

Heap& heap();

}  // namespace slalom::checking
