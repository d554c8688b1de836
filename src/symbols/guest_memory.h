// GuestMemory: the memory of a stopped guest as its kernel sees it. All that readers of guest structures need
// of a machine; whoever has one implements it.
#pragma once

#include <cstdint>
#include <span>

namespace slalom {

class GuestMemory {
 public:
  virtual ~GuestMemory() = default;
  // At a kernel virtual address. False: not all of it is mapped; `out` then holds anything.
  virtual bool read(uint64_t address, std::span<uint8_t> out) = 0;
};

}  // namespace slalom
