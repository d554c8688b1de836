// The memory management unit: page walks, TLB fills, and every access that the TLB does not answer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "vm/cpu/cpu.h"

namespace slalom::vm {

enum class AccessKind : uint8_t { Read, Write, Execute };

// Accesses that are not answered by a TLB entry: the page crossing, device and watched-page cases included.
// Up to 16 bytes, in cpu.buffer: handlers must not hand out addresses of their own variables, or they could
// not end with a jump. False: cpu.fault is set, or cpu.leave is Replay.
bool load_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size);
bool store_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size);
bool load_for_write_slow(Cpu& cpu, const Op* op, uint64_t address, unsigned size);
// The same for handlers, who know the size: quicker while somebody observes.
template <unsigned size>
bool load_missed(Cpu& cpu, const Op* op, uint64_t address);
template <unsigned size>
bool store_missed(Cpu& cpu, const Op* op, uint64_t address);
template <unsigned size>
bool load_for_write_missed(Cpu& cpu, const Op* op, uint64_t address);

// The same for what the CPU does by itself with supervisor rights (descriptor tables, task state, gates).
bool load_system(Cpu& cpu, uint64_t address, unsigned size, void* out);
bool store_system(Cpu& cpu, uint64_t address, unsigned size, const void* value);
// May that many bytes be written at the current privilege? Faults if not.
bool check_writable(Cpu& cpu, uint64_t address, unsigned size);

// The RAM behind an instruction's address; null with cpu.fault set, or null with fault.vector == 0 and
// `device` true when there is no RAM.
const uint8_t* fetch_page(Cpu& cpu, uint64_t address, uint64_t& ram_page, bool& no_ram);

// An address made in code that is not 64-bit, or with an address size prefix: wraps, and checks the segment.
// The result is cpu.linear.
bool legacy_address(Cpu& cpu, const Op* op, unsigned size, AccessKind kind, uint64_t offset);
bool segment_address(Cpu& cpu, SegmentName segment, uint64_t offset, unsigned size, AccessKind kind,
                     uint64_t& linear);

// Translates without side effects, for debuggers. False: not mapped.
bool translate_quietly(const Cpu& cpu, uint64_t address, Physical& physical);

// Called when blocks were decoded from a page for the first time: nobody may write to it unseen.
void protect_page(System& system, uint64_t ram_page);
// The four pointers of three-level paging, from where CR3 points. False: #GP, and nothing has changed.
bool load_pdptes(Cpu& cpu, uint64_t cr3);
void address_space_changed(Cpu& cpu, uint64_t old_cr3);
// After RAM was changed behind the CPUs' backs (loaders).
void forget_all(System& system);
// The first write to each page must be noticed again.
void forget_writes(System& system);

// What a CPU's translations of the upper half of the address space, which is the kernel's, rest on besides
// the tables that its root leads to.
struct UpperHalf {
  explicit UpperHalf(const Cpu& cpu);
  bool operator==(const UpperHalf&) const = default;

  bool known = false;
  uint64_t cr0 = 0, cr4 = 0, efer = 0;
  std::array<uint8_t, kPageSize / 2> entries{};  // of the root
};
// For a CPU whose jump cache has none: that of another CPU which reads the upper half in the same way, or a
// new one; 0: there are no more.
uint32_t find_generation(Cpu& cpu);
// After registers and the `changed` pages were restored: what of a kernel's translations cannot have changed
// stays, so that not every execution has to find all of it again. `before`: of each CPU, before that.
void forget_restored(System& system, std::span<const UpperHalf> before, std::span<const uint32_t> changed);

}  // namespace slalom::vm
