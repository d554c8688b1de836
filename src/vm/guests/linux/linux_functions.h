// LinuxFunctions: the functions of a Linux kernel whose calls reveal locks, allocations and panics.
//
// Which of them exist out of line depends on the kernel's version and configuration. Those that do not exist
// cannot be observed; missing() names them. The table contains the names of all versions since 5.10, and
// ignores names that this kernel does not have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "symbols/symbol_table.h"
#include "trace/op.h"

namespace slalom::vm {

struct LinuxFunction {
  enum class Role : uint8_t {
    Acquire,      // holds the lock when it returns
    AcquireIf,    // the same, if it returns true
    AcquireIf0,   // the same, if it returns 0
    Release,      // releases the lock when it is entered
    Downgrade,    // a writer becomes a reader
    Alloc,        // returns memory or an error
    AllocBulk,    // (cache, flags, count, pointers): returns the count
    Free,         // frees argument `object`
    FreeBulk,     // (cache, count, pointers)
    AllocPages,   // (flags, order, ...): returns a struct page
    Panic,        // its first argument is a text
    Warn,         // (file, line, ...)
    TaskSwitched  // another task has become the current one
  };
  // For allocations: the arguments that hold the size and the cache.
  static constexpr uint8_t kNone = 0xff;

  std::string_view name;
  std::string_view group;  // the common name in all versions: "spin_lock"
  Role role = Role::Acquire;
  OpKind op = OpKind::None;  // of the event
  uint8_t object = 0;        // which argument is the lock or the memory; kNone: neither
  uint8_t size = kNone;      // which argument is the size
  uint8_t cache = kNone;     // which argument is a kmem_cache
};

class LinuxFunctions {
 public:
  enum Kinds : uint8_t { kLocks = 1, kMemory = 2, kPanics = 4, kTasks = 8, kPages = 16 };
  LinuxFunctions(const SymbolTable& symbols, uint8_t kinds);

  // nullptr if no function of the table starts at `entry`.
  const LinuxFunction* at(uint64_t entry) const;
  const std::vector<uint64_t>& entries() const { return entries_; }
  // Groups of which this kernel has no function, because they are inlined; in the table's order.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  FlatMap<uint16_t> index_;  // by entry: index into the table, plus one
  std::vector<uint64_t> entries_;
  std::vector<std::string> missing_;
};

}  // namespace slalom::vm
