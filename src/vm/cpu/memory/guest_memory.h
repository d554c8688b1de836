// A guest's memory by the virtual addresses of one CPU, as a debugger looks at it: RAM only, rights ignored,
// and nothing in the guest shows that somebody looked. Addresses and sizes may come from the guest: all are
// checked. What the guest itself does goes through memory/mmu.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "symbols/guest_memory.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm {

// How many of the bytes were read: up to the first page that is not there.
size_t read_memory(const Cpu& cpu, uint64_t address, std::span<uint8_t> out);
inline bool read_all(const Cpu& cpu, uint64_t address, std::span<uint8_t> out) {
  return read_memory(cpu, address, out) == out.size();
}
std::optional<uint64_t> read_word(const Cpu& cpu, uint64_t address);
// Up to a zero or `most` bytes, or as far as memory goes.
std::string read_string(const Cpu& cpu, uint64_t address, size_t most);
// All or nothing; what was decoded or translated from there is forgotten. False: nothing.
bool write_memory(Cpu& cpu, uint64_t address, std::span<const uint8_t> bytes);

// The same for the symbol library. The machine must stand still.
class CpuMemory final : public GuestMemory {
 public:
  explicit CpuMemory(const Cpu& cpu) : cpu_(cpu) {}
  bool read(uint64_t address, std::span<uint8_t> out) override { return read_all(cpu_, address, out); }

 private:
  const Cpu& cpu_;
};

}  // namespace slalom::vm
