// Op and Block: what an instruction becomes when it is decoded.
//
// A block is a straight run of instructions within one physical page, ending with the first that may go
// somewhere else. Its ops lie one after the other, so that a handler finds the next one behind its own. An op
// knows places relative to the start of its block only: the same block serves every virtual mapping.
#pragma once

#include <cstdint>

#include "vm/memory/ram.h"

namespace slalom::vm {

struct Cpu;
struct Op;

// Does one instruction and goes on (see NEXT in cpu/handler.h).
using Handler = const Op* (*)(Cpu&, const Op*);

// How an address is made. Below kLegacySegments: 64-bit code, base from Cpu::segment_base. Above: the segment
// is checked on every access, slowly.
enum AddressSegment : uint8_t { kFlat = 0, kFlatStack = 1, kWithFs = 2, kWithGs = 3, kLegacySegments = 8 };

// What an instruction does to its first operand in memory. Somewhere: its address is not told.
enum class Touch : uint8_t { Nothing, Reads, Writes, Somewhere };

struct Op {
  Handler handler;
  uint8_t dst = 0;  // a register: number, or byte offset in the register file for 8-bit ones
  uint8_t src = 0;
  uint8_t base;  // of the address: sum of gpr[base] + gpr[index] << scale + displacement
  uint8_t index;
  uint8_t scale = 0;
  uint8_t segment = kFlat;  // an AddressSegment, or kLegacySegments + SegmentName
  uint8_t number = 0;       // within its block
  uint8_t length = 0;       // in bytes
  uint16_t offset = 0;      // of its first byte from the start of the block
  uint8_t bits = 0;
  uint8_t extra = 0;  // whatever a handler wants to know besides
  int32_t displacement = 0;
  int64_t immediate = 0;

  // Of `bits`.
  static constexpr uint8_t kAddress16 = 1, kAddress32 = 2;  // the address wraps
  static constexpr uint8_t kRep = 4, kRepne = 8, kLock = 16;
  static constexpr uint8_t kFar = 32;  // the displacement of a RIP-relative address overflowed: add 2^32

  uint64_t end() const { return uint64_t{offset} + length; }
};

// What decoding depends on besides the bytes.
struct CodeMode {
  uint8_t bits = 0;
  static constexpr uint8_t k16 = 0, k32 = 1, k64 = 2, kWidthMask = 3, kBigStack = 4;
  static constexpr uint8_t kLimited = 8;    // the code segment ends early: every step must look
  static constexpr uint8_t kObserved = 16;  // with hooks: see cpu/tap.h

  unsigned width() const { return bits & kWidthMask; }
  bool is_long() const { return width() == k64; }
  bool observed() const { return (bits & kObserved) != 0; }
  bool operator==(const CodeMode&) const = default;
};

struct Block {
  static constexpr unsigned kMaxOps = 48;             // instructions
  static constexpr unsigned kRoom = 3 * kMaxOps + 2;  // ops, with hooks and what ends the block

  // Where its last op leads: a block of the same page, or else one that was found at the address beside it by
  // a jump cache, as long as that is of this generation. `fallthrough` is also where its call returns to.
  Block* taken = nullptr;
  Block* fallthrough = nullptr;
  uint64_t taken_rip = kNowhere;
  uint64_t fallthrough_rip = kNowhere;
  static constexpr uint64_t kNowhere = uint64_t{1} << 63;  // no canonical address
  uint32_t generation = 0;
  CodeMode mode;
  uint8_t count = 0;  // instructions; one more op follows where the last of them is no jump
  uint16_t bytes = 0;
  const uint8_t* modifies = nullptr;  // of an observed block: for each instruction what it does to memory
  static constexpr uint8_t kLocked = 0x80;  // of those, besides a Modify
  Physical address = 0;
  Block* next_in_page = nullptr;
  Op ops[];  // hooks have the number of the instruction behind them, and length 0

  void forget_links() {
    taken = fallthrough = nullptr;
    taken_rip = kNowhere;
  }
  void begin_generation(uint32_t now) {
    if (generation != now) forget_links();
    generation = now;
  }

  struct Edge {  // of an observed block: the last one that led to it, in which round of coverage
    uint64_t from = 0, to = 0, round = 0;
    bool operator==(const Edge&) const = default;
  };
  // Few want to know it, so it lies before what `modifies` points to. Of a whole block, or its beginning.
  Edge& edge() const { return *reinterpret_cast<Edge*>(const_cast<uint8_t*>(modifies) - sizeof(Edge)); }
};
// One line of the host's cache, so that of ops none lies in two.
static_assert(sizeof(Block) == 64 && sizeof(Op) == 32);

}  // namespace slalom::vm
