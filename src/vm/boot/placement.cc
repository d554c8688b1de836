#include "vm/boot/placement.h"

#include <algorithm>
#include <array>

namespace slalom::vm {
namespace {

bool within_ram(const Ram& ram, Physical begin, Physical end) {
  if (begin > end) return false;
  if (end <= ram.low_size()) return true;
  const uint64_t high = ram.size() - ram.low_size();
  return begin >= kHighRamStart && end - kHighRamStart <= high;
}

uint64_t megabytes(uint64_t bytes) {
  return (bytes + (uint64_t{1} << 20) - 1) >> 20;
}

}  // namespace

std::vector<MemoryRange> memory_map(const Ram& ram) {
  std::vector<MemoryRange> map = {{0, kLowMemoryEnd, true},
                                  {kPlatformTables, kPlatformTables + kPlatformTablesSize, false}};
  if (ram.low_size() > kHighMemory) map.push_back({kHighMemory, ram.low_size(), true});
  if (ram.size() > ram.low_size())
    map.push_back({kHighRamStart, kHighRamStart + ram.size() - ram.low_size(), true});
  return map;
}

Result<void> Placement::reserve(const std::string& what, Physical address, uint64_t size) {
  if (size == 0) return {};
  const Physical end = address + size;
  if (!within_ram(ram_, address, end)) {
    if (end > address && end <= kLowRamEnd)
      return error("{} does not fit into {} MiB of memory: give at least --memory {}M", what,
                   ram_.size() >> 20, megabytes(end));
    return error("{} wants to be at {:#x}, {} bytes long, where the machine has no memory", what, address,
                 size);
  }
  if (const TakenRange* other = overlapping(address, end))
    return error("{} at {:#x} would lie over {} at {:#x}: give more --memory, or another kernel", what,
                 address, other->what, other->begin);
  taken_.push_back({what, address, end});
  return {};
}

Result<void> Placement::put(const std::string& what, Physical address, std::span<const uint8_t> bytes,
                            uint64_t size) {
  CHECK(bytes.size() <= size, "{} of {}", bytes.size(), size);
  TRY(reserve(what, address, size));
  if (!bytes.empty()) CHECK(ram_.write(address, bytes), "{} at {:#x}", what, address);
  // Fresh RAM is zero. Write zeros only to pages that are not, so that unused pages need no memory.
  std::array<uint8_t, kPageSize> page;
  for (uint64_t at = bytes.size(); at < size;) {
    const uint64_t piece = std::min(kPageSize - (address + at) % kPageSize, size - at);
    const std::span<uint8_t> part = std::span(page).first(piece);
    CHECK(ram_.read(address + at, part), "{} at {:#x}", what, address + at);
    if (std::any_of(part.begin(), part.end(), [](uint8_t byte) { return byte != 0; })) {
      std::fill(part.begin(), part.end(), uint8_t{0});
      CHECK(ram_.write(address + at, part), "{} at {:#x}", what, address + at);
    }
    at += piece;
  }
  return {};
}

Result<Physical> Placement::find_high(const std::string& what, uint64_t size, Physical floor,
                                      Physical limit) const {
  Physical end = std::min<Physical>(limit, ram_.low_size()) & ~(kPageSize - 1);
  while (end >= size && end - size >= floor) {
    const Physical begin = (end - size) & ~(kPageSize - 1);
    if (begin < floor) break;
    const TakenRange* other = overlapping(begin, begin + size);
    if (other == nullptr) return begin;
    end = other->begin & ~(kPageSize - 1);
  }
  return error("{} has {} MiB, for which {} MiB of memory have no room beside the kernel: give more --memory",
               what, megabytes(size), ram_.size() >> 20);
}

const Placement::TakenRange* Placement::overlapping(Physical begin, Physical end) const {
  const auto found = std::find_if(taken_.begin(), taken_.end(), [&](const TakenRange& taken) {
    return begin < taken.end && taken.begin < end;
  });
  return found == taken_.end() ? nullptr : &*found;
}

}  // namespace slalom::vm
