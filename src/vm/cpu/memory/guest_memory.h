// Reads and writes guest memory by a CPU's virtual addresses, as a debugger does: RAM only, without access
// rights, and invisible to the guest. Addresses and sizes may come from the guest; all are checked. Accesses
// by the guest itself go through vm/cpu/memory/mmu.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "symbols/guest_memory.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm {

// Returns how many bytes were read, up to the first page that is not mapped.
size_t read_memory(const Cpu& cpu, uint64_t address, std::span<uint8_t> out);
inline bool read_all(const Cpu& cpu, uint64_t address, std::span<uint8_t> out) {
  return read_memory(cpu, address, out) == out.size();
}
std::optional<uint64_t> read_word(const Cpu& cpu, uint64_t address);
// Reads up to a zero byte, `most` bytes, or the end of mapped memory.
std::string read_string(const Cpu& cpu, uint64_t address, size_t most);
// Writes all bytes or none. Drops what was decoded or translated from there. Returns false if nothing was
// written.
bool write_memory(Cpu& cpu, uint64_t address, std::span<const uint8_t> bytes);

// The same interface for the symbol library. The machine must stand still.
class CpuMemory final : public GuestMemory {
 public:
  explicit CpuMemory(const Cpu& cpu) : cpu_(cpu) {}
  bool read(uint64_t address, std::span<uint8_t> out) override { return read_all(cpu_, address, out); }

 private:
  const Cpu& cpu_;
};

}  // namespace slalom::vm
