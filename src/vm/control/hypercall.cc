#include "vm/control/hypercall.h"

#include <algorithm>
#include <array>

#include "vm/cpu/memory/guest_memory.h"

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
  std::vector<uint8_t> bytes(size);
  if (!read_all(cpu, address, bytes)) return std::nullopt;
  return bytes;
}

std::string read_text(const Cpu& cpu, uint64_t address, uint64_t size) {
  std::array<uint8_t, 4096> bytes;
  const size_t read =
      read_memory(cpu, address, std::span(bytes).first(std::min<uint64_t>(size, bytes.size())));
  return {bytes.begin(), bytes.begin() + read};
}

void give_bytes(Cpu& cpu, std::optional<std::span<const uint8_t>> bytes, uint64_t address, uint64_t room) {
  const bool given = bytes && bytes->size() <= room && write_memory(cpu, address, *bytes);
  answer(cpu, given ? bytes->size() : ~uint64_t{0});
}

}  // namespace slalom::vm
