// Heap: the memory of blocks that a test body allocates. Blocks have the same addresses in every execution
// with the same schedule, in every process.
//
// Each thread of the body takes its blocks from a region of its own, one after the other. No block is reused
// before the execution has ended, so a use of a freed block is always recognised. (The ABA of a block that is
// freed and allocated again is therefore reported as a use after free.) Blocks that still exist after a
// normal end may belong to an object that outlives executions, so they keep their memory. Not for allocations
// outside executions, which libc serves.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slalom::checking {

inline constexpr uint64_t kHeap = 0x600000000000;
inline constexpr uint64_t kHeapRegion = uint64_t{1} << 26;
inline constexpr uint32_t kHeapRegions = 256;

class Heap {
 public:
  bool prepare();  // returns false if the system gives no memory

  // Whether allocations are served here; otherwise libc serves them.
  void set_on(bool on) { on_ = on; }
  bool on() const { return on_; }
  // Begins an execution. Blocks that the last one has left over keep their memory if it ended normally.
  void begin(bool ended_normally);

  void* allocate(uint32_t agent, size_t size, size_t alignment);  // nullptr if there is no room
  static bool owns(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer) - kHeap < kHeapRegion * kHeapRegions;
  }
  static size_t size_of(const void* block) { return header(block).size; }
  static bool is_live(const void* block) { return header(block).state == Live; }
  void free(void* block);

  // The first execution uses libc's heap, which a use after free would damage. So blocks that it frees are
  // kept until it has ended.
  void begin_keeping() { keeps_ = true; }
  void end_keeping();
  bool keeps() const { return keeps_; }
  void keep(void* block);

  // The reader of an execution's records learns in their order which blocks were freed before an access. It
  // marks these blocks and asks which one contains an address; nullptr if none does.
  void mark_freed(const void* block);
  const void* freed_block(const void* address) const;
  uint64_t live() const { return live_; }
  // The address minus the space that blocks of earlier executions keep: the same in every execution.
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

  uint8_t* shadow_ = nullptr;  // for each 16 bytes: whether they are freed, and whether a block begins there
  uint64_t first_[kHeapRegions] = {};  // for each region, the offset where this execution's blocks begin
  uint64_t used_[kHeapRegions] = {};
  uint32_t regions_used_ = 0;  // all regions in use have a lower index
  uint64_t live_ = 0;
  bool on_ = false;
  bool keeps_ = false;
  void** kept_ = nullptr;
  size_t kept_count_ = 0, kept_room_ = 0;
};

Heap& heap();

}  // namespace slalom::checking
