// One hypercall of the guest (guest/slalom.h) as a value, and the buffers that it names.
//
// What a guest names is checked: a buffer that is not in its memory gives nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "guest/slalom.h"
#include "vm/pc/pc.h"

namespace slalom::vm {

struct Hypercall {
  uint64_t number = 0;  // SLALOM_READY and the like
  uint64_t a = 0, b = 0, c = 0;
};

Hypercall hypercall_of(const Cpu& cpu);
void answer(Cpu& cpu, uint64_t value);

// Nothing if not all of it is in memory, or it is larger than `limit`.
std::optional<std::vector<uint8_t>> read_buffer(const Cpu& cpu, uint64_t address, uint64_t size,
                                                uint64_t limit);
std::string read_text(const Cpu& cpu, uint64_t address, uint64_t size);  // up to 4 KiB, "" if there is none
// Answers a call for bytes: how many there are, or -1 if there are none or not enough room for them.
void give_bytes(Cpu& cpu, std::optional<std::span<const uint8_t>> bytes, uint64_t address, uint64_t room);

}  // namespace slalom::vm
