// LinuxSlabs: to which cache of the slab allocator an object belongs, and where the memory of a struct page
// lies, as the kernel's own structures say it.
//
// Where the members lie is taken from the types of this very kernel; without them nothing is known. What is
// read is guest memory: a pointer that leads nowhere, or to what is no cache, gives nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vm/guests/linux/guest_kernel.h"

namespace slalom::vm {

class LinuxSlabs {
 public:
  explicit LinuxSlabs(const GuestKernel& kernel);

  struct Cache {
    std::string name;
    int64_t size = 0;             // of an object
    bool outlives_frees = false;  // SLAB_TYPESAFE_BY_RCU: readers may look at what is free
  };
  std::optional<Cache> read(const Cpu& cpu, uint64_t cache) const;
  // The kmem_cache of an object; nothing where it is not a slab's.
  std::optional<uint64_t> cache_of(const Cpu& cpu, uint64_t object) const;
  // The memory that a struct page stands for.
  std::optional<uint64_t> memory_of(const Cpu& cpu, uint64_t page) const;

 private:
  bool known_ = false;  // members of caches
  uint64_t name_ = 0, size_ = 0, flags_ = 0;
  uint64_t vmemmap_ = 0, direct_map_ = 0;  // variables that hold where these begin; 0: not known
  uint64_t page_size_ = 0, head_ = 0, slab_cache_ = 0;
};

}  // namespace slalom::vm
