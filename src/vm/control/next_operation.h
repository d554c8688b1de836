// NextOperations: finds out what a CPU's next instruction will do to memory, for strategies and reports.
//
// It is used at every choice point, mostly for the same few instructions. Each is decoded once and then
// recognised by address and bytes, so that the results never depend on earlier calls.
#pragma once

#include <array>
#include <cstdint>

#include "trace/choice.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm {

class NextOperations {
 public:
  // Describes the first memory operand. The kind is OpKind::None if there is none, or if the instruction
  // cannot be read.
  PendingOp of(const Cpu& cpu);
  // Prefetches what of() and the CPU itself will soon need.
  void prefetch(const Cpu& cpu) const {
    const uint64_t rip = cpu.regs.gpr[kRip];
    const TlbEntry& entry = cpu.tlbs[rip >> 63 != 0 ? 0 : 1].entries[Tlb::index(rip)];
    __builtin_prefetch(reinterpret_cast<const void*>(rip + entry.addend));
    __builtin_prefetch(&known_[slot_of(rip)]);
    __builtin_prefetch(&cpu.jumps->at(rip));
  }

 private:
  struct alignas(64) Known {  // one line of the host's cache
    uint64_t rip = 0;
    std::array<uint8_t, 16> bytes{};  // the last byte is not part of the instruction, and zero
    uint8_t size = 0;                 // number of bytes that could be read; 0: empty entry
    bool is_long = false;
    OpKind kind = OpKind::None;
    // The operand's address. Registers as in Registers::gpr; kZero for none.
    uint8_t base = 0, index = 0, scale = 0, segment = 0;
    bool narrow = false;     // uses 32-bit registers
    bool from_next = false;  // relative to the next instruction
    uint8_t length = 0;
    uint64_t displacement = 0;
  };
  static constexpr size_t kMostBytes = 15;
  static Known decode(const std::array<uint8_t, 16>& bytes, size_t size, bool is_long);

  // By hash of the address. Several times as many slots as a search has places, because two places in one
  // slot are decoded again and again.
  static constexpr unsigned kKnownBits = 13;
  static size_t slot_of(uint64_t rip) { return rip * 0x9e3779b97f4a7c15u >> (64 - kKnownBits); }
  std::array<Known, size_t{1} << kKnownBits> known_;
};

}  // namespace slalom::vm
