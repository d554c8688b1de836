#include "vm/guests/linux/linux_slabs.h"

#include <algorithm>

#include "base/little_endian.h"
#include "vm/cpu/memory/guest_memory.h"

namespace slalom::vm {
namespace {

constexpr uint32_t kTypesafeByRcu = 0x80000;
constexpr uint32_t kLargestObject = 1u << 22;

}  // namespace

LinuxSlabs::LinuxSlabs(const GuestKernel& kernel) {
  if (!kernel.types) return;
  const Btf& types = *kernel.types;
  const auto name = types.field("kmem_cache.name");
  const auto size = types.field("kmem_cache.object_size");
  const auto flags = types.field("kmem_cache.flags");
  if (!name || !size || size->size != 4 || !flags) return;
  known_ = true;
  name_ = name->offset;
  size_ = size->offset;
  flags_ = flags->offset;
  const auto vmemmap = kernel.symbols.address_of("vmemmap_base");
  const auto direct_map = kernel.symbols.address_of("page_offset_base");
  const auto page = types.size_of("page");
  const auto head = types.field("page.compound_head");
  auto cache = types.field("slab.slab_cache");  // since 5.17
  if (!cache) cache = types.field("page.slab_cache");
  if (!vmemmap || !direct_map || !page || *page == 0 || !head || !cache) return;
  vmemmap_ = *vmemmap;
  direct_map_ = *direct_map;
  page_size_ = *page;
  head_ = head->offset;
  slab_cache_ = cache->offset;
}

std::optional<LinuxSlabs::Cache> LinuxSlabs::read(const Cpu& cpu, uint64_t cache) const {
  uint8_t size[4], flags[4];
  if (!known_ || !read_all(cpu, cache + size_, size) || !read_all(cpu, cache + flags_, flags))
    return std::nullopt;
  const std::optional<uint64_t> name = read_word(cpu, cache + name_);
  Cache found{.name = name ? read_string(cpu, *name, 64) : "",
              .size = *get_le<uint32_t>(size, 0),
              .outlives_frees = (*get_le<uint32_t>(flags, 0) & kTypesafeByRcu) != 0};
  const bool printable = std::ranges::all_of(found.name, [](char c) { return c >= ' ' && c <= '~'; });
  if (found.name.empty() || !printable || found.size > kLargestObject) return std::nullopt;
  return found;
}

std::optional<uint64_t> LinuxSlabs::cache_of(const Cpu& cpu, uint64_t object) const {
  if (vmemmap_ == 0) return std::nullopt;
  const auto pages = read_word(cpu, vmemmap_), memory = read_word(cpu, direct_map_);
  if (!pages || !memory || object < *memory || object >= *pages) return std::nullopt;
  uint64_t page = *pages + (object - *memory) / kPageSize * page_size_;
  const auto head = read_word(cpu, page + head_);
  if (!head) return std::nullopt;
  if ((*head & 1) != 0) page = *head - 1;
  return read_word(cpu, page + slab_cache_);
}

std::optional<uint64_t> LinuxSlabs::memory_of(const Cpu& cpu, uint64_t page) const {
  if (vmemmap_ == 0) return std::nullopt;
  const auto pages = read_word(cpu, vmemmap_), memory = read_word(cpu, direct_map_);
  if (!pages || !memory || page < *pages) return std::nullopt;
  return *memory + (page - *pages) / page_size_ * kPageSize;
}

}  // namespace slalom::vm
