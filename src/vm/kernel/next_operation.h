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

 private:
  struct Known {
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

  std::array<Known, 1024> known_;  // by address
};

}  // namespace slalom::vm
