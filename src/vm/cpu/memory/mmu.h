// The memory management unit: page walks, TLB fills, and all accesses that miss the TLB.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

enum class AccessKind : uint8_t { Read, Write, Execute };

// Accesses without a TLB entry, including page crossings, devices and watched pages. The data (up to 16
// bytes) is in cpu.buffer: if a handler passed the address of a local variable, it could not end with a jump.
// If they return false, cpu.fault is set or cpu.leave is Replay.
bool load_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size);
bool store_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size);
bool load_for_write_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size);
// The same for handlers, which know the size. Faster if the CPU is observed.
template <unsigned size>
bool load_missed(Cpu& cpu, const Op* op, uint64_t address);
template <unsigned size>
bool store_missed(Cpu& cpu, const Op* op, uint64_t address);
template <unsigned size>
bool load_for_write_missed(Cpu& cpu, const Op* op, uint64_t address);

// The same for accesses of the CPU itself with supervisor rights (descriptor tables, task state, gates).
bool load_system(Cpu& cpu, uint64_t address, unsigned size, void* out);
bool store_system(Cpu& cpu, uint64_t address, unsigned size, const void* value);
// Faults and returns false if this many bytes cannot be written with the current privilege.
bool check_writable(Cpu& cpu, uint64_t address, unsigned size);

// Returns the RAM at an instruction's address. nullptr with cpu.fault set if the fetch faults; nullptr with
// `no_ram` true if there is no RAM.
const uint8_t* fetch_page(Cpu& cpu, uint64_t address, uint64_t& ram_page, bool& no_ram);

// Computes an address in code that is not 64-bit, or with an address size prefix: it wraps, and the segment
// is checked. The result is in cpu.linear.
bool legacy_address(Cpu& cpu, const Op* op, unsigned size, AccessKind kind, uint64_t offset);
bool segment_address(Cpu& cpu, SegmentName segment, uint64_t offset, unsigned size, AccessKind kind,
                     uint64_t& linear);

// Translates without side effects, for debuggers. Returns false if the address is not mapped.
bool translate_quietly(const Cpu& cpu, uint64_t address, Physical& physical);

// Call this when the first block of a page is decoded. From then on, writes to the page are noticed.
void protect_page(System& system, uint64_t ram_page);
// Loads the four pointers of three-level paging from the address in CR3. If it returns false, #GP is raised
// and nothing has changed.
bool load_pdptes(Cpu& cpu, uint64_t cr3);
void address_space_changed(Cpu& cpu, uint64_t old_cr3);
// Call this after RAM was changed without the CPUs (loaders).
void forget_all(System& system);
// The first write to each page must be noticed again.
void forget_writes(System& system);

// The state on which a CPU's translations of the upper half of the address space (the kernel's half) depend,
// besides the tables below its root.
struct UpperHalf {
  explicit UpperHalf(const Cpu& cpu);
  bool operator==(const UpperHalf&) const = default;

  bool known = false;
  uint64_t cr0 = 0, cr4 = 0, efer = 0;
  std::array<uint8_t, kPageSize / 2> entries{};  // of the root table
};
// For a CPU whose jump cache has no generation. Returns the generation of another CPU with an equal upper
// half, or a new one; 0 if there are no more numbers.
uint32_t find_generation(Cpu& cpu);
// Call this after registers and the `changed` pages were restored. Keeps the kernel translations that cannot
// have changed, so that an execution need not find all of them again. `before`: the upper half of each CPU
// before the restore.
void forget_restored(System& system, std::span<const UpperHalf> before, std::span<const uint32_t> changed);

}  // namespace slalom::vm
