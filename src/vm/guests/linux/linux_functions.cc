#include "vm/guests/linux/linux_functions.h"

#include <algorithm>
#include <iterator>

namespace slalom::vm {
namespace {

using Role = LinuxFunction::Role;
using enum LinuxFunction::Role;

constexpr LinuxFunction of_size(std::string_view name, std::string_view group, uint8_t size,
                                uint8_t cache = LinuxFunction::kNone) {
  return {name, group, Alloc, OpKind::Alloc, LinuxFunction::kNone, size, cache};
}
constexpr LinuxFunction from_cache(std::string_view name, std::string_view group, Role role = Alloc) {
  return {name, group, role, OpKind::Alloc, LinuxFunction::kNone, LinuxFunction::kNone, 0};
}

// The table leaves out functions that only call another function of the table (mutex_lock_io, kvmalloc,
// kfree_sensitive ...), so that each lock and allocation is emitted once.
constexpr LinuxFunction kFunctions[] = {
    // spin locks; argument 0 is the lock
    {"_raw_spin_lock", "spin_lock", Acquire, OpKind::Lock},
    {"_raw_spin_lock_bh", "spin_lock_bh", Acquire, OpKind::Lock},
    {"_raw_spin_lock_irq", "spin_lock_irq", Acquire, OpKind::Lock},
    {"_raw_spin_lock_irqsave", "spin_lock_irqsave", Acquire, OpKind::Lock},
    {"_raw_spin_trylock", "spin_trylock", AcquireIf, OpKind::TryLock},
    {"_raw_spin_trylock_bh", "spin_trylock_bh", AcquireIf, OpKind::TryLock},
    {"_raw_spin_unlock", "spin_unlock", Release, OpKind::Unlock},
    {"_raw_spin_unlock_bh", "spin_unlock_bh", Release, OpKind::Unlock},
    {"_raw_spin_unlock_irq", "spin_unlock_irq", Release, OpKind::Unlock},
    {"_raw_spin_unlock_irqrestore", "spin_unlock_irqrestore", Release, OpKind::Unlock},
    // reader-writer spin locks
    {"_raw_read_lock", "read_lock", Acquire, OpKind::ReadLock},
    {"_raw_read_lock_bh", "read_lock_bh", Acquire, OpKind::ReadLock},
    {"_raw_read_lock_irq", "read_lock_irq", Acquire, OpKind::ReadLock},
    {"_raw_read_lock_irqsave", "read_lock_irqsave", Acquire, OpKind::ReadLock},
    {"_raw_read_trylock", "read_trylock", AcquireIf, OpKind::ReadLock},
    {"_raw_read_unlock", "read_unlock", Release, OpKind::ReadUnlock},
    {"_raw_read_unlock_bh", "read_unlock_bh", Release, OpKind::ReadUnlock},
    {"_raw_read_unlock_irq", "read_unlock_irq", Release, OpKind::ReadUnlock},
    {"_raw_read_unlock_irqrestore", "read_unlock_irqrestore", Release, OpKind::ReadUnlock},
    {"_raw_write_lock", "write_lock", Acquire, OpKind::WriteLock},
    {"_raw_write_lock_nested", "write_lock", Acquire, OpKind::WriteLock},
    {"_raw_write_lock_bh", "write_lock_bh", Acquire, OpKind::WriteLock},
    {"_raw_write_lock_irq", "write_lock_irq", Acquire, OpKind::WriteLock},
    {"_raw_write_lock_irqsave", "write_lock_irqsave", Acquire, OpKind::WriteLock},
    {"_raw_write_trylock", "write_trylock", AcquireIf, OpKind::WriteLock},
    {"_raw_write_unlock", "write_unlock", Release, OpKind::WriteUnlock},
    {"_raw_write_unlock_bh", "write_unlock_bh", Release, OpKind::WriteUnlock},
    {"_raw_write_unlock_irq", "write_unlock_irq", Release, OpKind::WriteUnlock},
    {"_raw_write_unlock_irqrestore", "write_unlock_irqrestore", Release, OpKind::WriteUnlock},
    // mutexes
    {"mutex_lock", "mutex_lock", Acquire, OpKind::Lock},
    {"mutex_lock_interruptible", "mutex_lock_interruptible", AcquireIf0, OpKind::Lock},
    {"mutex_lock_killable", "mutex_lock_killable", AcquireIf0, OpKind::Lock},
    {"mutex_trylock", "mutex_trylock", AcquireIf, OpKind::TryLock},
    {"mutex_unlock", "mutex_unlock", Release, OpKind::Unlock},
    {"ww_mutex_lock", "ww_mutex_lock", AcquireIf0, OpKind::Lock},
    {"ww_mutex_unlock", "ww_mutex_unlock", Release, OpKind::Unlock},
    {"rt_mutex_lock", "rt_mutex_lock", Acquire, OpKind::Lock},
    {"rt_mutex_unlock", "rt_mutex_unlock", Release, OpKind::Unlock},
    // reader-writer semaphores
    {"down_read", "down_read", Acquire, OpKind::ReadLock},
    {"down_read_interruptible", "down_read_interruptible", AcquireIf0, OpKind::ReadLock},
    {"down_read_killable", "down_read_killable", AcquireIf0, OpKind::ReadLock},
    {"down_read_trylock", "down_read_trylock", AcquireIf, OpKind::ReadLock},
    {"up_read", "up_read", Release, OpKind::ReadUnlock},
    {"down_write", "down_write", Acquire, OpKind::WriteLock},
    {"down_write_killable", "down_write_killable", AcquireIf0, OpKind::WriteLock},
    {"down_write_trylock", "down_write_trylock", AcquireIf, OpKind::WriteLock},
    {"up_write", "up_write", Release, OpKind::WriteUnlock},
    {"downgrade_write", "downgrade_write", Downgrade, OpKind::WriteUnlock},
    // read sections
    {"__rcu_read_lock", "rcu_read_lock", Acquire, OpKind::ReadLock, LinuxFunction::kNone},
    {"__rcu_read_unlock", "rcu_read_unlock", Release, OpKind::ReadUnlock, LinuxFunction::kNone},
    {"__srcu_read_lock", "srcu_read_lock", Acquire, OpKind::ReadLock},
    {"__srcu_read_unlock", "srcu_read_unlock", Release, OpKind::ReadUnlock},
    // memory: the result is the object; then size and cache
    of_size("__kmalloc", "kmalloc", 0),
    of_size("__kmalloc_noprof", "kmalloc", 0),
    of_size("__kmalloc_node", "kmalloc_node", 0),
    of_size("__kmalloc_node_noprof", "kmalloc_node", 0),
    of_size("__kvmalloc_node_noprof", "kmalloc_node", 0),
    of_size("__kmalloc_track_caller", "kmalloc_track_caller", 0),
    of_size("__kmalloc_node_track_caller", "kmalloc_track_caller", 0),
    of_size("__kmalloc_node_track_caller_noprof", "kmalloc_track_caller", 0),
    of_size("kmalloc_nolock_noprof", "kmalloc", 0),
    of_size("_kmalloc_nolock_noprof", "kmalloc", 0),
    of_size("kmem_cache_alloc_trace", "kmalloc of a fixed size", 2, 0),
    of_size("kmalloc_trace", "kmalloc of a fixed size", 2, 0),
    of_size("__kmalloc_cache_noprof", "kmalloc of a fixed size", 2, 0),
    of_size("kmem_cache_alloc_node_trace", "kmalloc of a fixed size", 3, 0),
    of_size("kmalloc_node_trace", "kmalloc of a fixed size", 3, 0),
    of_size("__kmalloc_cache_node_noprof", "kmalloc of a fixed size", 3, 0),
    of_size("kmalloc_order", "kmalloc of pages", 0),
    of_size("kmalloc_large", "kmalloc of pages", 0),
    of_size("kmalloc_large_node", "kmalloc of pages", 0),
    of_size("__kmalloc_large_noprof", "kmalloc of pages", 0),
    of_size("__kmalloc_large_node_noprof", "kmalloc of pages", 0),
    from_cache("kmem_cache_alloc", "kmem_cache_alloc"),
    from_cache("kmem_cache_alloc_noprof", "kmem_cache_alloc"),
    from_cache("kmem_cache_alloc_lru", "kmem_cache_alloc"),
    from_cache("kmem_cache_alloc_lru_noprof", "kmem_cache_alloc"),
    from_cache("kmem_cache_alloc_node", "kmem_cache_alloc_node"),
    from_cache("kmem_cache_alloc_node_noprof", "kmem_cache_alloc_node"),
    from_cache("kmem_cache_alloc_from_sheaf_noprof", "kmem_cache_alloc"),
    from_cache("kmem_cache_alloc_bulk", "kmem_cache_alloc_bulk", AllocBulk),
    from_cache("kmem_cache_alloc_bulk_noprof", "kmem_cache_alloc_bulk", AllocBulk),
    {"kfree", "kfree", Free, OpKind::Free, 0},
    {"kfree_nolock", "kfree", Free, OpKind::Free, 0},
    {"kmem_cache_free", "kmem_cache_free", Free, OpKind::Free, 1, LinuxFunction::kNone, 0},
    {"kmem_cache_free_bulk", "kmem_cache_free_bulk", FreeBulk, OpKind::Free, LinuxFunction::kNone,
     LinuxFunction::kNone, 0},
    of_size("__vmalloc_node_range", "vmalloc", 0),
    of_size("__vmalloc_node_range_noprof", "vmalloc", 0),
    {"vfree", "vfree", Free, OpKind::Free, 0},
    {"vfree_atomic", "vfree", Free, OpKind::Free, 0},
    // whole pages, including those for slabs
    {"__alloc_pages", "alloc_pages", AllocPages, OpKind::Alloc},
    {"__alloc_pages_noprof", "alloc_pages", AllocPages, OpKind::Alloc},
    {"__alloc_pages_nodemask", "alloc_pages", AllocPages, OpKind::Alloc},
    {"__alloc_frozen_pages_noprof", "alloc_pages", AllocPages, OpKind::Alloc},
    // trouble
    {"panic", "panic", Panic, OpKind::Fail, 0},
    {"vpanic", "panic", Panic, OpKind::Fail, 0},
    {"__die", "oops", Panic, OpKind::Fail, 0},
    {"__warn", "warning", Warn, OpKind::Note, 0},
    // the running task
    {"finish_task_switch", "task switch", TaskSwitched, OpKind::ThreadSwitch},
};

LinuxFunctions::Kinds kind_of(Role role) {
  switch (role) {
    case Acquire:
    case AcquireIf:
    case AcquireIf0:
    case Release:
    case Downgrade:
      return LinuxFunctions::kLocks;
    case Alloc:
    case AllocBulk:
    case Free:
    case FreeBulk:
      return LinuxFunctions::kMemory;
    case AllocPages:
      return LinuxFunctions::kPages;
    case Panic:
    case Warn:
      return LinuxFunctions::kPanics;
    case TaskSwitched:
      return LinuxFunctions::kTasks;
  }
  return LinuxFunctions::kTasks;
}

// Suffixes that compilers append to functions that they have specialised but not split.
constexpr std::string_view kSuffixes[] = {"", ".isra.0", ".constprop.0", ".constprop.0.isra.0"};

std::vector<uint64_t> find(const SymbolTable& symbols, std::string_view name) {
  std::vector<uint64_t> found;
  for (const std::string_view suffix : kSuffixes)
    for (const Symbol* symbol : symbols.named(std::string(name) + std::string(suffix)))
      if (!symbol->is_offset && symbol->module.empty()) found.push_back(symbol->address);
  return found;
}

}  // namespace

LinuxFunctions::LinuxFunctions(const SymbolTable& symbols, uint8_t kinds) {
  std::vector<std::string> groups, present;
  for (uint16_t i = 0; i < std::size(kFunctions); ++i) {
    const LinuxFunction& function = kFunctions[i];
    if ((kinds & kind_of(function.role)) == 0) continue;
    const std::string group(function.group);
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
    for (const uint64_t entry : find(symbols, function.name)) {
      present.push_back(group);
      // Two names of one function count once.
      if (index_.contains(entry)) continue;
      index_[entry] = static_cast<uint16_t>(i + 1);
      entries_.push_back(entry);
    }
  }
  for (std::string& group : groups)
    if (std::ranges::find(present, group) == present.end()) missing_.push_back(std::move(group));
  // Seqlocks have no functions in any version; the spin lock in a seqlock_t is seen.
  if (kinds & kLocks) missing_.push_back("seqlock");
}

const LinuxFunction* LinuxFunctions::at(uint64_t entry) const {
  const uint16_t* found = index_.find(entry);
  return found == nullptr ? nullptr : &kFunctions[*found - 1];
}

}  // namespace slalom::vm
