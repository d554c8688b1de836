// Reads one hypercall of the guest (guest/slalom.h) and the buffers that it names, and writes its answer.
//
// Addresses from the guest are checked. A buffer outside of the guest's memory reads as empty.
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
  uint64_t number = 0;  // SLALOM_READY and so on
  uint64_t a = 0, b = 0, c = 0;
};

Hypercall hypercall_of(const Cpu& cpu);
void answer(Cpu& cpu, uint64_t value);

// Empty if a part of the buffer is not in memory, or if it is larger than `limit`.
std::optional<std::vector<uint8_t>> read_buffer(const Cpu& cpu, uint64_t address, uint64_t size,
                                                uint64_t limit);
std::string read_text(const Cpu& cpu, uint64_t address, uint64_t size);  // at most 4 KiB; "" if unreadable
// Answers a call that asks for bytes. The answer is their count, or -1 if there are no bytes or too little
// room.
void give_bytes(Cpu& cpu, std::optional<std::span<const uint8_t>> bytes, uint64_t address, uint64_t room);

}  // namespace slalom::vm
