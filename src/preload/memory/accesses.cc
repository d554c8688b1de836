// Memory accesses: the functions that the compiler calls in a program built with -fsanitize=thread. This
// library takes the place of the sanitizer's runtime, so such a program runs unchanged.
//
// Every access is an operation of its agent and is reported. An atomic access is a choice point, unless other
// synchronisation was seen to always order it. A plain access is a choice point only where the policy says so
// (everywhere, or at places that were seen to conflict), or where a schedule switches. An agent that reads
// the same value at the same place again and again waits for another one, so it yields.
#include "preload/memory/accesses.h"

#include <stdint.h>

#include "preload/runtime/raw.h"
#include "preload/runtime/runtime.h"

namespace slalom::preload {
namespace {

constexpr uint32_t kDepth = Calls::kDepth;
constexpr uint32_t kRecent = 4;            // number of different reads that a waiting loop may have
constexpr uint32_t kSameReads = 3;         // this many repeated reads in a row mean a loop that waits
constexpr uint32_t kSetUpReads = 100'000;  // the limit during set-up
// This many accesses without a choice point may also be such a loop.
constexpr uint32_t kPlainInARow = 100'000;

constinit thread_local Calls calls = {};

// The reads of the thread since it last changed something.
struct Reads {
  struct Read {
    const void* address;
    uint64_t pc, value;
    bool operator==(const Read&) const = default;
  } recent[kRecent];
  uint32_t next;
  uint32_t repeated;  // repeated reads in a row

  // During set-up there is no other thread to wait for, and programs read the same settings again and again.
  bool waits() const { return !runtime().in_set_up() || repeated >= kSetUpReads; }
  // Adds a read. Returns whether the thread keeps repeating its recent reads.
  bool add(const Read& read) {
    for (const Read& known : recent)
      if (known == read) return ++repeated >= kSameReads;
    recent[next] = read;
    next = (next + 1) % kRecent;
    repeated = 0;
    return false;
  }
};
constinit thread_local Reads reads = {};
constinit thread_local uint32_t plain_in_a_row = 0;
constinit thread_local uint64_t fenced = 0;
constinit thread_local int ignored[2] = {};  // nesting depth of ignored loads and stores
constexpr uint32_t kMostIgnored = 64;
constinit Range ignored_memory[kMostIgnored] = {};
constinit uint32_t ignored_count = 0;

}  // namespace

uint64_t access_place(void* return_address) {
  const uint64_t pc = reinterpret_cast<uint64_t>(return_address) - 1;
  return runtime().is_library_code(pc) ? caller_place(pc) : pc;
}

uint64_t caller_place(uint64_t otherwise) {
  const Runtime& rt = runtime();
  for (uint32_t i = calls.depth < kDepth ? calls.depth : kDepth; i > 0; --i)
    if (const uint64_t caller = calls.return_to[i - 1] - 1;
        rt.is_user_code(caller) && !rt.is_library_code(caller))
      return caller;
  return otherwise;
}

void ignore(OpKind op, int more) {
  ignored[op == OpKind::Store] += more;
}
void ignore_memory(const void* address, uint64_t size) {
  const uint64_t begin = object_id(address);
  if (ignored_count < kMostIgnored) ignored_memory[ignored_count++] = {begin, begin + size};
}
bool sees(OpKind op, const void* address) {
  if (ignored[op == OpKind::Store] > 0) return false;
  for (uint32_t i = 0; i < ignored_count; ++i)
    if (object_id(address) - ignored_memory[i].begin < ignored_memory[i].end - ignored_memory[i].begin)
      return false;
  return true;
}
void swap_calls(Calls& of_last, Calls& of_next) {
  of_last = calls;
  calls = of_next;
}

namespace {

uint64_t value_at(const void* address, uint32_t size) {
  uint64_t value = 0;
  switch (size) {
    case 1:
      return *static_cast<const uint8_t*>(address);
    case 2:
      __builtin_memcpy(&value, address, 2);
      return value;
    case 4:
      __builtin_memcpy(&value, address, 4);
      return value;
    case 8:
      __builtin_memcpy(&value, address, 8);
      return value;
    default:
      for (uint32_t i = 0; i < size; ++i)
        value |= uint64_t{static_cast<const uint8_t*>(address)[i]} << (8 * i);
      return value;
  }
}

// Runs before the access is made. For a write, the value is the one that is overwritten.
[[gnu::flatten]] void plain_at(OpKind op, const void* address, uint32_t size, uint64_t pc) {
  Runtime& rt = runtime();
  const bool long_run = ++plain_in_a_row >= kPlainInARow;
  // Stops exactly at the step limit, so that a replay ends there, too.
  if (long_run || rt.is_at_limit() ||
      (rt.stops_at_access({op, object_id(address), size, pc}) && !rt.in_set_up())) {
    rt.arrive(op, object_id(address), pc);
    plain_in_a_row = 0;
  } else if (rt.has_hidden_dependencies()) {
    rt.set_place(pc);
    rt.tell_hidden_dependencies();
  }
  rt.set_place(pc);
  rt.tell_access(op, address, size, value_at(address, size), op == OpKind::Store);
  rt.retire(long_run && !rt.in_set_up());
}

void plain(OpKind op, const void* address, uint32_t size, void* return_address) {
  if (runtime().controls() && sees(op, address)) plain_at(op, address, size, access_place(return_address));
}

}  // namespace

void tell_range(OpKind op, const void* address, uint64_t size, uint64_t pc) {
  const auto* bytes = static_cast<const char*>(address);
  bool& in_range = runtime().me().in_range;
  for (uint64_t at = 0; at < size; at += 8) {
    plain_at(op, bytes + at, static_cast<uint32_t>(size - at < 8 ? size - at : 8), pc);
    in_range = true;
  }
  in_range = false;
}

namespace {

void range(OpKind op, const void* address, uint64_t size, void* return_address) {
  if (runtime().controls() && sees(op, address)) tell_range(op, address, size, access_place(return_address));
}

// Stops before an atomic operation. The caller then makes it and reports the result with done().
uint64_t arrive_at(OpKind op, const volatile void* address, uint32_t size, void* return_address) {
  const uint64_t pc = access_place(return_address);
  const uint64_t object = object_id(const_cast<const void*>(address));
  if (runtime().stops_at_atomic({op, object, size, pc}) || ++plain_in_a_row >= kPlainInARow) {
    plain_in_a_row = 0;
    runtime().arrive(op, object, pc);
  } else {
    runtime().set_place(pc);
  }
  return pc;
}

// `changed`: the memory now has another value than before.
[[gnu::flatten]] void done(OpKind op, const volatile void* place, uint32_t size, uint64_t value, bool wrote,
                           bool changed, uint64_t pc, int order) {
  const void* address = const_cast<const void*>(place);
  runtime().tell_access(op, address, size, value, wrote, order != __ATOMIC_SEQ_CST);
  const bool waits = !changed && reads.add({address, pc, value}) && reads.waits();
  if (changed) reads = {};
  runtime().retire(waits);
}

template <typename T>
uint64_t number(T value) {
  return static_cast<uint64_t>(value);
}

template <typename T>
T load(const volatile T* address, int order, void* from) {
  if (!runtime().controls()) return *address;
  const uint64_t pc = arrive_at(OpKind::AtomicLoad, address, sizeof(T), from);
  const T value = *address;
  done(OpKind::AtomicLoad, address, sizeof(T), number(value), false, false, pc, order);
  return value;
}

template <typename T>
void store(volatile T* address, T value, int order, void* from) {
  if (!runtime().controls()) {
    *address = value;
    return;
  }
  const uint64_t pc = arrive_at(OpKind::AtomicStore, address, sizeof(T), from);
  *address = value;
  done(OpKind::AtomicStore, address, sizeof(T), number(value), true, true, pc, order);
}

// Only one thread runs at a time, so plain operations are atomic. Without control several threads may run.
template <typename T, typename Change>
T modify(volatile T* address, int order, void* from, Change change) {
  if (!runtime().controls()) {
    T before = *address;
    if constexpr (sizeof(T) <= 8) {
      while (!__atomic_compare_exchange_n(address, &before, change(before), false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST)) {
      }
    } else {
      *address = change(before);
    }
    return before;
  }
  const uint64_t pc = arrive_at(OpKind::ReadModifyWrite, address, sizeof(T), from);
  const T before = *address;
  const T after = change(before);
  *address = after;
  done(OpKind::ReadModifyWrite, address, sizeof(T), number(after), true, after != before, pc, order);
  return before;
}

template <typename T>
int exchange_if(volatile T* address, T* expected, T desired, int order, void* from) {
  if (!runtime().controls()) {
    if constexpr (sizeof(T) <= 8) {
      return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST);
    } else {
      const T before = *address;
      if (before == *expected) *address = desired;
      const bool same = before == *expected;
      *expected = before;
      return same;
    }
  }
  const uint64_t pc = arrive_at(OpKind::CompareExchange, address, sizeof(T), from);
  const T before = *address;
  const bool same = before == *expected;
  if (same)
    *address = desired;
  else
    *expected = before;
  done(OpKind::CompareExchange, address, sizeof(T), number(before), same, same, pc, order);
  return same;
}

}  // namespace

void forget_accesses() {
  calls.depth = 0;
  reads = {};
  plain_in_a_row = 0;
  ignored[0] = ignored[1] = 0;
}
uint32_t call_depth() {
  return calls.depth;
}
void set_call_depth(uint32_t depth) {
  calls.depth = depth;
}

}  // namespace slalom::preload

using namespace slalom;
using namespace slalom::preload;

#define FROM __builtin_return_address(0)

SLALOM_EXPORT void __tsan_init() {
  runtime().see_accesses();
  runtime().look_for_modules();  // reports the module whose constructor makes this call
}
SLALOM_EXPORT void __tsan_func_entry(void* return_to) {
  if (calls.depth < kDepth) calls.return_to[calls.depth] = reinterpret_cast<uint64_t>(return_to);
  ++calls.depth;
}
SLALOM_EXPORT void __tsan_func_exit() {
  if (calls.depth > 0) --calls.depth;
}

#define PLAIN(size)                                               \
  SLALOM_EXPORT void __tsan_read##size(void* address) {           \
    plain(OpKind::Load, address, size, FROM);                     \
  }                                                               \
  SLALOM_EXPORT void __tsan_write##size(void* address) {          \
    plain(OpKind::Store, address, size, FROM);                    \
  }                                                               \
  SLALOM_EXPORT void __tsan_volatile_read##size(void* address) {  \
    plain(OpKind::Load, address, size, FROM);                     \
  }                                                               \
  SLALOM_EXPORT void __tsan_volatile_write##size(void* address) { \
    plain(OpKind::Store, address, size, FROM);                    \
  }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
#undef PLAIN
#define WIDE(name)                                           \
  SLALOM_EXPORT void __tsan_##name##read16(void* address) {  \
    range(OpKind::Load, address, 16, FROM);                  \
  }                                                          \
  SLALOM_EXPORT void __tsan_##name##write16(void* address) { \
    range(OpKind::Store, address, 16, FROM);                 \
  }
WIDE()
WIDE(volatile_)
WIDE(unaligned_)
#undef WIDE
#define UNALIGNED(size)                                            \
  SLALOM_EXPORT void __tsan_unaligned_read##size(void* address) {  \
    plain(OpKind::Load, address, size, FROM);                      \
  }                                                                \
  SLALOM_EXPORT void __tsan_unaligned_write##size(void* address) { \
    plain(OpKind::Store, address, size, FROM);                     \
  }
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
#undef UNALIGNED
SLALOM_EXPORT void __tsan_read_range(void* address, unsigned long size) {
  range(OpKind::Load, address, size, FROM);
}
SLALOM_EXPORT void __tsan_write_range(void* address, unsigned long size) {
  range(OpKind::Store, address, size, FROM);
}
// The constructors of an object write its vtable pointer again and again. Only a change counts as a write.
SLALOM_EXPORT void __tsan_vptr_update(void** address, void* value) {
  if (*address != value) plain(OpKind::Store, address, 8, FROM);
}
SLALOM_EXPORT void __tsan_vptr_read(void** address) {
  plain(OpKind::Load, address, 8, FROM);
}

// Only a full fence orders a store before a later load on processors with store buffers. There it is, or has
// the effect of, a read-modify-write of the thread's own memory.
SLALOM_EXPORT void __tsan_atomic_thread_fence(int order) {
  if (order != __ATOMIC_SEQ_CST || !runtime().controls()) return;
  runtime().set_place(access_place(FROM));
  runtime().tell_access(OpKind::ReadModifyWrite, &fenced, sizeof fenced, 0, true);
}
SLALOM_EXPORT void __tsan_atomic_signal_fence(int) {}

#define MODIFY(bits, type, name, result)                                                               \
  SLALOM_EXPORT type __tsan_atomic##bits##_##name(volatile type* address, type operand, int order) {   \
    return modify(address, order, FROM, [operand](type before) { return static_cast<type>(result); }); \
  }
#define ATOMIC(bits, type)                                                                                \
  SLALOM_EXPORT type __tsan_atomic##bits##_load(const volatile type* address, int order) {                \
    return load(address, order, FROM);                                                                    \
  }                                                                                                       \
  SLALOM_EXPORT void __tsan_atomic##bits##_store(volatile type* address, type value, int order) {         \
    store(address, value, order, FROM);                                                                   \
  }                                                                                                       \
  MODIFY(bits, type, exchange, (static_cast<void>(before), operand))                                      \
  MODIFY(bits, type, fetch_add, before + operand)                                                         \
  MODIFY(bits, type, fetch_sub, before - operand)                                                         \
  MODIFY(bits, type, fetch_and, before& operand)                                                          \
  MODIFY(bits, type, fetch_or, before | operand)                                                          \
  MODIFY(bits, type, fetch_xor, before ^ operand)                                                         \
  MODIFY(bits, type, fetch_nand, ~(before & operand))                                                     \
  SLALOM_EXPORT int __tsan_atomic##bits##_compare_exchange_strong(volatile type* address, type* expected, \
                                                                  type desired, int order, int) {         \
    return exchange_if(address, expected, desired, order, FROM);                                          \
  }                                                                                                       \
  SLALOM_EXPORT int __tsan_atomic##bits##_compare_exchange_weak(volatile type* address, type* expected,   \
                                                                type desired, int order, int) {           \
    return exchange_if(address, expected, desired, order, FROM);                                          \
  }                                                                                                       \
  SLALOM_EXPORT type __tsan_atomic##bits##_compare_exchange_val(volatile type* address, type expected,    \
                                                                type desired, int order, int) {           \
    exchange_if(address, &expected, desired, order, FROM);                                                \
    return expected;                                                                                      \
  }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
__extension__ typedef unsigned __int128 uint128;
ATOMIC(128, uint128)
