// GuestMemory: the memory of a stopped guest as its kernel sees it. Readers of guest structures need nothing
// else of a machine. Each owner of a machine implements it.
#pragma once

#include <cstdint>
#include <span>

namespace slalom {

class GuestMemory {
 public:
  virtual ~GuestMemory() = default;
  // Reads at a kernel virtual address. Returns false if a part of it is not mapped; `out` is then undefined.
  virtual bool read(uint64_t address, std::span<uint8_t> out) = 0;
};

}  // namespace slalom
