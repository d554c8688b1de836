#include "vm/memory/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace slalom::vm {

void Arena::begin_chunk() {
  static_assert(kMost <= kChunk);
  void* chunk = std::aligned_alloc(kChunk, kChunk);
  if (chunk == nullptr) throw std::bad_alloc();
  madvise(chunk, kChunk, MADV_HUGEPAGE);
  chunks_.push_back(chunk);
  next_ = static_cast<std::byte*>(chunk);
  left_ = kChunk / kLine;
}

void Arena::clear() {
  for (void* chunk : chunks_) std::free(chunk);
  chunks_.clear();
  free_.clear();
  left_ = 0;
}

}  // namespace slalom::vm
