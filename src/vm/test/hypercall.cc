#include "vm/test/hypercall.h"

#include <algorithm>

#include "vm/gdb/guest_memory.h"

namespace slalom::vm {

Hypercall hypercall_of(const Cpu& cpu) {
  return {.number = cpu.regs.gpr[kRax],
          .a = cpu.regs.gpr[kRdi],
          .b = cpu.regs.gpr[kRsi],
          .c = cpu.regs.gpr[kRdx]};
}

void answer(Cpu& cpu, uint64_t value) {
  cpu.regs.gpr[kRax] = value;
}

std::optional<std::vector<uint8_t>> read_buffer(const Cpu& cpu, uint64_t address, uint64_t size,
                                                uint64_t limit) {
  if (size > limit) return std::nullopt;
  std::vector<uint8_t> bytes = read_memory(cpu, address, size);
  if (bytes.size() != size) return std::nullopt;
  return bytes;
}

std::string read_text(const Cpu& cpu, uint64_t address, uint64_t size) {
  const std::vector<uint8_t> bytes = read_memory(cpu, address, std::min<uint64_t>(size, 4096));
  return {bytes.begin(), bytes.end()};
}

void give_bytes(Cpu& cpu, std::optional<std::span<const uint8_t>> bytes, uint64_t address, uint64_t room) {
  const bool given = bytes && bytes->size() <= room && write_memory(cpu, address, *bytes);
  answer(cpu, given ? bytes->size() : ~uint64_t{0});
}

}  // namespace slalom::vm
