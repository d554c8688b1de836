// LinuxFunctions: the functions of a Linux kernel that say what it does: locks, allocations, panics.
//
// Which of them a kernel has out of line depends on its version and configuration; what it has not cannot be
// seen, and missing() says so. The table has the names of all versions from 5.10 on; names that a kernel does
// not have are left out.
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
    Acquire,      // has the lock when it returns
    AcquireIf,    // the same, if its result is true
    AcquireIf0,   // the same, if its result is 0
    Release,      // gives the lock back when it is entered
    Downgrade,    // a writer becomes a reader
    Alloc,        // returns memory, or an error
    AllocBulk,    // (cache, flags, count, pointers): returns how many
    Free,         // of argument `object`
    FreeBulk,     // (cache, count, pointers)
    AllocPages,   // (flags, order, ...): returns a struct page
    Panic,        // its first argument is a text
    Warn,         // (file, line, ...)
    TaskSwitched  // another task is the current one
  };
  // Of allocations: where the size and the cache are.
  static constexpr uint8_t kNone = 0xff;

  std::string_view name;
  std::string_view group;  // what it stands for, whatever a version calls it: "spin_lock"
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

  // Null: none of them.
  const LinuxFunction* at(uint64_t entry) const;
  const std::vector<uint64_t>& entries() const { return entries_; }
  // Groups of which this kernel has no function, in the table's order: what is inlined there.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  FlatMap<uint16_t> index_;  // by entry: into the table, plus one
  std::vector<uint64_t> entries_;
  std::vector<std::string> missing_;
};

}  // namespace slalom::vm
