// LinuxSlabs: finds the slab cache of an object, and the memory that a struct page stands for, by reading the
// kernel's own structures.
//
// The positions of members come from the types of this kernel. Without types nothing is known. Pointers in
// guest memory may be invalid: a result is empty if one leads nowhere or to something that is no cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vm/guests/linux/linux_kernel.h"

namespace slalom::vm {

class LinuxSlabs {
 public:
  explicit LinuxSlabs(const GuestKernel& kernel);

  struct Cache {
    std::string name;
    int64_t size = 0;             // of an object
    bool outlives_frees = false;  // SLAB_TYPESAFE_BY_RCU: readers may access freed objects
  };
  std::optional<Cache> read(const Cpu& cpu, uint64_t cache) const;
  // The kmem_cache of an object; empty if no slab contains it.
  std::optional<uint64_t> cache_of(const Cpu& cpu, uint64_t object) const;
  // The address of the memory that a struct page stands for.
  std::optional<uint64_t> memory_of(const Cpu& cpu, uint64_t page) const;

 private:
  bool known_ = false;  // the members of kmem_cache are known
  uint64_t name_ = 0, size_ = 0, flags_ = 0;
  uint64_t vmemmap_ = 0, direct_map_ = 0;  // addresses of the variables that hold these bases; 0 if unknown
  uint64_t page_size_ = 0, head_ = 0, slab_cache_ = 0;
};

}  // namespace slalom::vm
