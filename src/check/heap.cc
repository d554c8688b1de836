#include "check/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

// libc's own functions, under names that no other library replaces.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace slalom::checking {
namespace {

constexpr uint8_t kFreedByte = 1, kFreedBegin = 2;
constexpr uint64_t kPage = 4096;

constinit Heap the_heap;

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) & ~(to - 1);
}

}  // namespace

Heap& heap() {
  return the_heap;
}

bool Heap::prepare() {
  if (shadow_ != nullptr) return true;
  const auto map = [](uint64_t at, uint64_t size) {
    return mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at != 0 ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  };
  constexpr uint64_t kSize = kHeapRegion * kHeapRegions;
  if (map(kHeap, kSize) != reinterpret_cast<void*>(kHeap)) return false;
  void* memory = map(0, kSize / 16);
  if (memory == MAP_FAILED) return false;
  shadow_ = static_cast<uint8_t*>(memory);
  return true;
}

void Heap::begin(bool ended_normally) {
  for (uint32_t i = 0; i < regions_used_; ++i) {
    auto* base = reinterpret_cast<char*>(kHeap + i * kHeapRegion);
    memset(shadow(base + first_[i]), 0, (used_[i] - first_[i]) / 16);
    if (ended_normally && live_ > 0)
      first_[i] = round_up(used_[i], kPage);
    else
      memset(base + first_[i], 0, used_[i] - first_[i]);  // the execution must not see earlier contents
    used_[i] = first_[i];
  }
  live_ = 0;
  regions_used_ = 0;
}

void* Heap::allocate(uint32_t agent, size_t size, size_t alignment) {
  const uint32_t region = agent;
  if (region >= kHeapRegions || size >= kHeapRegion) return nullptr;
  if (region >= regions_used_) {
    for (uint32_t i = regions_used_; i <= region; ++i) used_[i] = first_[i];
    regions_used_ = region + 1;
  }
  const uint64_t base = kHeap + region * kHeapRegion;
  const uint64_t at = round_up(used_[region] + sizeof(Header), std::max<uint64_t>(alignment, 16));
  const uint64_t end = round_up(at + std::max<size_t>(size, 1), 16);
  if (end > kHeapRegion) return nullptr;
  used_[region] = end;
  auto* block = reinterpret_cast<void*>(base + at);
  header(block) = {size, Live, 0};
  ++live_;
  return block;
}

void Heap::free(void* block) {
  header(block).state = Freed;
  --live_;
}

void Heap::keep(void* block) {
  if (kept_count_ == kept_room_) {
    const size_t room = std::max<size_t>(64, 2 * kept_room_);
    void* more = __libc_realloc(kept_, room * sizeof *kept_);
    if (more == nullptr) return;  // the block is never freed
    kept_ = static_cast<void**>(more);
    kept_room_ = room;
  }
  kept_[kept_count_++] = block;
}

void Heap::end_keeping() {
  keeps_ = false;
  std::sort(kept_, kept_ + kept_count_);
  void** const end = std::unique(kept_, kept_ + kept_count_);  // a block may have been freed twice
  std::for_each(kept_, end, __libc_free);
  kept_count_ = 0;
}

void Heap::mark_freed(const void* block) {
  const size_t granules = (std::max<size_t>(header(block).size, 1) + 15) / 16;
  memset(shadow(block), kFreedByte, granules);
  *shadow(block) = kFreedBegin;
}

const void* Heap::freed_block(const void* address) const {
  if (!owns(address) || shadow_ == nullptr) return nullptr;
  const uint8_t* at = shadow(address);
  if (*at == 0) return nullptr;
  while (*at != kFreedBegin) --at;
  return reinterpret_cast<const void*>(kHeap + static_cast<uint64_t>(at - shadow_) * 16);
}

namespace {

using preload::Runtime;
using preload::runtime;

// Allocates for the running agent. Returns nullptr if no agent runs or its region is full.
void* allocate(size_t size, size_t alignment, uint64_t pc) {
  Runtime& rt = runtime();
  void* block = heap().allocate(rt.self(), size, alignment);
  if (block == nullptr) return nullptr;
  rt.set_place(pc);
  rt.tell(OpKind::Alloc, preload::object_id(block), 0, static_cast<int64_t>(size));
  return block;
}

bool ours() {
  return heap().on() && runtime().controls();
}

bool keeps_libcs() {
  return heap().keeps() && runtime().controls();
}

void release(void* block, uint64_t pc) {
  const bool controlled = runtime().controls();
  const bool live = Heap::is_live(block);
  if (controlled) {
    runtime().set_place(pc);
    runtime().tell(OpKind::Free, preload::object_id(block), live);
  }
  if (live) heap().free(block);
}

}  // namespace
}  // namespace slalom::checking

using namespace slalom::preload;
using slalom::checking::Heap;

SLALOM_EXPORT void* malloc(size_t size) {
  if (slalom::checking::ours())
    if (void* block = slalom::checking::allocate(size, 16, SLALOM_PLACE())) return block;
  return __libc_malloc(size);
}
SLALOM_EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (slalom::checking::ours() && !__builtin_mul_overflow(count, size, &bytes))
    if (void* block = slalom::checking::allocate(bytes, 16, SLALOM_PLACE())) return memset(block, 0, bytes);
  return __libc_calloc(count, size);
}
SLALOM_EXPORT void* memalign(size_t alignment, size_t size) {
  if (slalom::checking::ours() && alignment <= 4096)
    if (void* block = slalom::checking::allocate(size, alignment, SLALOM_PLACE())) return block;
  return __libc_memalign(alignment, size);
}
SLALOM_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  if (slalom::checking::ours() && alignment <= 4096)
    if (void* block = slalom::checking::allocate(size, alignment, SLALOM_PLACE())) return block;
  return __libc_memalign(alignment, size);
}
SLALOM_EXPORT int posix_memalign(void** result, size_t alignment, size_t size) {
  void* block = aligned_alloc(alignment, size);
  if (block == nullptr) return ENOMEM;
  *result = block;
  return 0;
}
SLALOM_EXPORT void free(void* block) {
  if (Heap::owns(block)) return slalom::checking::release(block, SLALOM_PLACE());
  if (block == nullptr || !slalom::checking::keeps_libcs()) return __libc_free(block);
  slalom::checking::heap().keep(block);
}
SLALOM_EXPORT void* realloc(void* block, size_t size) {
  const bool from_here = Heap::owns(block);
  if (!from_here && block != nullptr && slalom::checking::keeps_libcs()) {
    void* moved = size == 0 ? nullptr : __libc_malloc(size);
    if (moved != nullptr) memcpy(moved, block, std::min(size, SLALOM_REAL(malloc_usable_size)(block)));
    if (moved != nullptr || size == 0) slalom::checking::heap().keep(block);
    return moved;
  }
  if (!from_here && (block != nullptr || !slalom::checking::ours())) return __libc_realloc(block, size);
  if (from_here && size == 0) {
    slalom::checking::release(block, SLALOM_PLACE());
    return nullptr;
  }
  void* moved = slalom::checking::ours() ? slalom::checking::allocate(size, 16, SLALOM_PLACE()) : nullptr;
  if (moved == nullptr) moved = __libc_malloc(size);
  if (moved == nullptr || !from_here) return moved;
  memcpy(moved, block, std::min(size, Heap::size_of(block)));
  slalom::checking::release(block, SLALOM_PLACE());
  return moved;
}
SLALOM_EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return errno = ENOMEM, nullptr;
  return realloc(block, bytes);
}
SLALOM_EXPORT size_t malloc_usable_size(void* block) {
  if (Heap::owns(block)) return Heap::size_of(block);
  return SLALOM_REAL(malloc_usable_size)(block);
}
