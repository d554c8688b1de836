// What a CPU is about to do to memory, as far as its next instruction says: for strategies and reports.
//
// Asked at every choice point, mostly about the same few instructions: these are decoded once, and known
// again by their bytes, so that what is said never depends on who asked before.
#pragma once

#include <array>
#include <cstdint>

#include "trace/choice.h"
#include "vm/cpu/cpu.h"

namespace slalom::vm {

class NextOperations {
 public:
  // The first operand in memory; OpKind::None where there is none, or the instruction cannot be read.
  PendingOp of(const Cpu& cpu);
  // Soon it will be asked about this CPU: what it needs for that, and the CPU to go on, is far away.
  void expect(const Cpu& cpu) const {
    const uint64_t rip = cpu.regs.gpr[kRip];
    const TlbEntry& entry = cpu.tlbs[rip >> 63 != 0 ? 0 : 1].entries[Tlb::index(rip)];
    __builtin_prefetch(reinterpret_cast<const void*>(rip + entry.addend));
    __builtin_prefetch(&known_[slot_of(rip)]);
    __builtin_prefetch(&cpu.jumps->at(rip));
  }

 private:
  struct alignas(64) Known {  // a line of the host's cache
    uint64_t rip = 0;
    std::array<uint8_t, 16> bytes{};  // the last one is the instruction's no more, and zero
    uint8_t size = 0;                 // of those that could be read; 0: nothing is known
    bool is_long = false;
    OpKind kind = OpKind::None;
    // Where the operand lies: registers as in Registers::gpr, kZero for none.
    uint8_t base = 0, index = 0, scale = 0, segment = 0;
    bool narrow = false;     // 32-bit registers
    bool from_next = false;  // relative to the next instruction
    uint8_t length = 0;
    uint64_t displacement = 0;
  };
  static constexpr size_t kMostBytes = 15;
  static Known decode(const std::array<uint8_t, 16>& bytes, size_t size, bool is_long);

  // By address. Several times as many as a search has places: of two that meet each is decoded again and
  // again.
  static constexpr unsigned kKnownBits = 13;
  static size_t slot_of(uint64_t rip) { return rip * 0x9e3779b97f4a7c15u >> (64 - kKnownBits); }
  std::array<Known, size_t{1} << kKnownBits> known_;
};

}  // namespace slalom::vm
