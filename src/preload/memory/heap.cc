// The heap of an instrumented program. The runtime reports the allocations and frees of the user's own code.
// It keeps freed blocks aside for a while, so that their use is not mistaken for the use of a new block.
// Freeing counts as writing: a use of the memory that is not ordered before it is a race.
//
// Allocations before main() are known but not reported. Calls of other programs, and of libraries for
// themselves, go straight to the allocator behind this one (libc's, or another that the program was linked
// with).
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include <new>

#include "preload/memory/accesses.h"
#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kMostBlocks = 1 << 15;  // blocks known at a time
constexpr uint64_t kToldBytes = 1024;      // bytes of a freed block that are reported as written

struct Block {
  void* address;
  uint64_t size;
  enum class State : uint8_t { Unknown, Live, Freed } state;
};

// Blocks by address, with open addressing. Entries are never removed, because used addresses are used again.
class Blocks {
 public:
  Block* find(void* address) {
    Block& block = slot(address);
    return block.address == address && block.state != Block::State::Unknown ? &block : nullptr;
  }
  void add(void* address, uint64_t size) {
    Block& block = slot(address);
    if (block.address == nullptr && ++count_ > kMostBlocks / 2) return;
    block = {address, size, Block::State::Live};
  }
  void forget(void* address) {
    if (Block* block = find(address)) block->state = Block::State::Unknown;
  }
  // Keeps a freed block. Returns the block to really free, which is the oldest kept one; nullptr if none.
  void* keep(Block& block) {
    block.state = Block::State::Freed;
    kept_[(first_ + kept_count_++) % kMostKept] = &block;
    kept_bytes_ += block.size;
    if (kept_count_ < kMostKept && kept_bytes_ <= kMostKeptBytes) return nullptr;
    Block* oldest = kept_[first_];
    first_ = (first_ + 1) % kMostKept;
    --kept_count_;
    kept_bytes_ -= oldest->size;
    oldest->state = Block::State::Unknown;
    return oldest->address;
  }

 private:
  Block& slot(const void* address) {
    auto at = static_cast<uint32_t>((reinterpret_cast<uint64_t>(address) >> 4) * 0x9e3779b1u);
    for (;; ++at) {
      Block& block = blocks_[at % kMostBlocks];
      if (block.address == address || block.address == nullptr) return block;
    }
  }

  Block blocks_[kMostBlocks];
  Block* kept_[kMostKept];
  uint32_t count_, first_, kept_count_;
  uint64_t kept_bytes_;
};
constinit Blocks blocks = {};

// Calls a function of the allocator behind this one.
template <typename Result, typename... Parameters, typename... Arguments>
Result call(Result (*function)(Parameters...), Arguments&&... arguments) {
  const InAllocator maybe(reinterpret_cast<const void*>(function));
  return function(arguments...);
}
#define CALL(name, ...) call(SLALOM_REAL(name), __VA_ARGS__)

// The caller of operator new or delete, which call the functions here.
constinit thread_local void* outer_caller = nullptr;

class Caller {
 public:
  explicit Caller(void* caller) : before_(outer_caller) {
    if (before_ == nullptr) outer_caller = caller;
  }
  ~Caller() { outer_caller = before_; }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  void* before_;
};

// Returns the place in the user's code that the call is for; 0 if it is for other code.
uint64_t place_for(void* return_address) {
  if (!runtime().sees_accesses()) return 0;
  void* caller = outer_caller != nullptr ? outer_caller : return_address;
  if (runtime().is_user_code(reinterpret_cast<uint64_t>(caller) - 1)) return access_place(caller);
  // Allocations of the C++ library's strings count as the user's.
  return outer_caller != nullptr ? caller_place(0) : 0;
}

void* allocated(void* memory, size_t size, void* return_address) {
  if (memory == nullptr) return memory;
  if (runtime().warms_up()) blocks.add(memory, size);
  const uint64_t pc = place_for(return_address);
  if (pc == 0) return memory;
  blocks.add(memory, size);
  Runtime& rt = runtime();
  rt.set_place(pc);
  rt.tell(OpKind::Alloc, object_id(memory), 0, static_cast<int64_t>(size));
  rt.retire();
  return memory;
}

void release(void* memory, void* return_address) {
  Runtime& rt = runtime();
  Block* block = memory != nullptr && rt.sees_accesses() ? blocks.find(memory) : nullptr;
  if (block == nullptr) {
    if (runtime().warms_up()) blocks.forget(memory);
    return CALL(free, memory);
  }
  const uint64_t named = place_for(return_address);
  const uint64_t pc = named != 0 ? named : rt.place(return_address);
  const bool live = block->state == Block::State::Live;
  if (live) tell_range(OpKind::Store, memory, block->size < kToldBytes ? block->size : kToldBytes, pc);
  rt.drop_values(memory, block->size);  // freeing writes no known value
  rt.set_place(pc);
  rt.tell(OpKind::Free, object_id(memory), live, static_cast<int64_t>(block->size));
  rt.retire();
  if (live)
    if (void* oldest = blocks.keep(*block)) CALL(free, oldest);
}

}  // namespace
}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)

SLALOM_EXPORT void* malloc(size_t size) noexcept {
  return allocated(CALL(malloc, size), size, FROM);
}
SLALOM_EXPORT void* calloc(size_t count, size_t size) noexcept {
  return allocated(CALL(calloc, count, size), count * size, FROM);
}
SLALOM_EXPORT void free(void* memory) noexcept {
  release(memory, FROM);
}
SLALOM_EXPORT void* realloc(void* memory, size_t size) noexcept {
  Block* block = memory != nullptr && runtime().sees_accesses() ? blocks.find(memory) : nullptr;
  if (block == nullptr) return allocated(CALL(realloc, memory, size), size, FROM);
  void* moved = allocated(CALL(malloc, size), size, FROM);
  if (moved == nullptr) return nullptr;
  __builtin_memcpy(moved, memory, size < block->size ? size : block->size);
  release(memory, FROM);
  return moved;
}
SLALOM_EXPORT void* memalign(size_t alignment, size_t size) noexcept {
  return allocated(CALL(memalign, alignment, size), size, FROM);
}
SLALOM_EXPORT void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return allocated(CALL(aligned_alloc, alignment, size), size, FROM);
}
SLALOM_EXPORT int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  const int result = CALL(posix_memalign, memory, alignment, size);
  if (result == 0) allocated(*memory, size, FROM);
  return result;
}

// operator new and delete, by their mangled names.
#define EACH(...) __VA_ARGS__
#define NEW(name, parameters, arguments)            \
  extern "C" void* name parameters;                 \
  SLALOM_EXPORT void* name parameters {             \
    const Caller caller(FROM);                      \
    return call(SLALOM_REAL(name), EACH arguments); \
  }
NEW(_Znwm, (size_t size), (size))
NEW(_Znam, (size_t size), (size))
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const std::nothrow_t& tag), (size, tag))
NEW(_ZnamRKSt9nothrow_t, (size_t size, const std::nothrow_t& tag), (size, tag))
NEW(_ZnwmSt11align_val_t, (size_t size, std::align_val_t alignment), (size, alignment))
NEW(_ZnamSt11align_val_t, (size_t size, std::align_val_t alignment), (size, alignment))
#undef NEW
#define DELETE(name, parameters, arguments)  \
  extern "C" void name parameters;           \
  SLALOM_EXPORT void name parameters {       \
    const Caller caller(FROM);               \
    call(SLALOM_REAL(name), EACH arguments); \
  }
DELETE(_ZdlPv, (void* memory), (memory))
DELETE(_ZdaPv, (void* memory), (memory))
DELETE(_ZdlPvm, (void* memory, size_t size), (memory, size))
DELETE(_ZdaPvm, (void* memory, size_t size), (memory, size))
DELETE(_ZdlPvSt11align_val_t, (void* memory, std::align_val_t alignment), (memory, alignment))
DELETE(_ZdaPvSt11align_val_t, (void* memory, std::align_val_t alignment), (memory, alignment))
DELETE(_ZdlPvmSt11align_val_t, (void* memory, size_t size, std::align_val_t alignment),
       (memory, size, alignment))
DELETE(_ZdaPvmSt11align_val_t, (void* memory, size_t size, std::align_val_t alignment),
       (memory, size, alignment))
#undef DELETE
