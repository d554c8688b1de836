// A guest's memory by virtual address, for a debugger: RAM only, without side effects on the guest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "vm/pc.h"

namespace slalom::vm {

// As many of the bytes as lie in RAM without a gap, as this CPU's page tables map them now.
std::vector<uint8_t> read_memory(const Cpu& cpu, uint64_t address, uint64_t size);
// All or nothing, rights ignored; what was decoded or translated from there is forgotten. False: nothing.
bool write_memory(Cpu& cpu, uint64_t address, std::span<const uint8_t> bytes);

}  // namespace slalom::vm
