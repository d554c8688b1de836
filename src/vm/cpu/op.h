// Op and Block: decoded code.
//
// A block is a straight run of instructions within one physical page, up to the first that may jump. Its ops
// are contiguous, so a handler finds the next op behind its own. Ops contain only positions relative to the
// start of their block, so the same block serves every virtual mapping.
#pragma once

#include <cstdint>

#include "vm/memory/ram.h"

namespace slalom::vm {

struct Cpu;
struct Op;

// Executes one instruction and continues (see NEXT in cpu/handler.h).
using Handler = const Op* (*)(Cpu&, const Op*);

// How an address is computed. Below kLegacySegments: 64-bit code, with the base from Cpu::segment_base.
// Above: every access checks the segment, slowly.
enum AddressSegment : uint8_t { kFlat = 0, kFlatStack = 1, kWithFs = 2, kWithGs = 3, kLegacySegments = 8 };

// What an instruction does to its first memory operand. Somewhere: the address is unknown.
enum class OperandUse : uint8_t { Nothing, Reads, Writes, Somewhere };

struct Op {
  Handler handler;
  uint8_t dst = 0;  // a register: number, or byte offset in the register file for 8-bit ones
  uint8_t src = 0;
  uint8_t base;  // of the address: sum of gpr[base] + gpr[index] << scale + displacement
  uint8_t index;
  uint8_t scale = 0;
  uint8_t segment = kFlat;  // an AddressSegment, or kLegacySegments + SegmentName
  uint8_t number = 0;       // index of the instruction in its block
  uint8_t length = 0;       // in bytes
  uint16_t offset = 0;      // of its first byte, relative to the start of the block
  uint8_t bits = 0;
  uint8_t extra = 0;  // additional data for the handler
  int32_t displacement = 0;
  int64_t immediate = 0;

  // Values of `bits`.
  static constexpr uint8_t kAddress16 = 1, kAddress32 = 2;  // the address wraps
  static constexpr uint8_t kRep = 4, kRepne = 8, kLock = 16;
  static constexpr uint8_t kFar = 32;  // the displacement of a RIP-relative address overflowed: add 2^32

  uint64_t end() const { return uint64_t{offset} + length; }
};

// What decoding depends on, besides the bytes.
struct CodeMode {
  uint8_t bits = 0;
  static constexpr uint8_t k16 = 0, k32 = 1, k64 = 2, kWidthMask = 3, kBigStack = 4;
  static constexpr uint8_t kLimited = 8;    // the code segment ends early: check the limit at every step
  static constexpr uint8_t kObserved = 16;  // has hooks: see cpu/observe/tap.h

  unsigned width() const { return bits & kWidthMask; }
  bool is_long() const { return width() == k64; }
  bool observed() const { return (bits & kObserved) != 0; }
  bool operator==(const CodeMode&) const = default;
};

struct Block {
  static constexpr unsigned kMaxOps = 48;             // instructions
  static constexpr unsigned kRoom = 3 * kMaxOps + 2;  // ops, including hooks and the op that ends the block

  // Links to the blocks that follow the last op: blocks of the same page, or blocks that a jump cache found
  // at the address next to the link. The latter are valid only in this generation. `fallthrough` is also
  // where the block's call returns to.
  Block* taken = nullptr;
  Block* fallthrough = nullptr;
  uint64_t taken_rip = kNowhere;
  uint64_t fallthrough_rip = kNowhere;
  static constexpr uint64_t kNowhere = uint64_t{1} << 63;  // not a canonical address
  uint32_t generation = 0;
  CodeMode mode;
  uint8_t count = 0;  // instructions; one more op follows if the last of them is no jump
  uint16_t bytes = 0;
  const uint8_t* modifies = nullptr;        // for observed blocks: by instruction, what it does to memory
  static constexpr uint8_t kLocked = 0x80;  // a bit in these, besides a Modify
  Physical address = 0;
  Block* next_in_page = nullptr;
  Op ops[];  // a hook has the number of the next instruction, and length 0

  void forget_links() {
    taken = fallthrough = nullptr;
    taken_rip = kNowhere;
  }
  void begin_generation(uint32_t now) {
    if (generation != now) forget_links();
    generation = now;
  }

  struct Edge {  // of an observed block: the edge by which it was last entered, and the round of coverage
    uint64_t from = 0, to = 0, round = 0;
    bool operator==(const Edge&) const = default;
  };
  // Located before the data of `modifies`, because few readers need it. For a whole block, or a beginning of
  // one.
  Edge& edge() const { return *reinterpret_cast<Edge*>(const_cast<uint8_t*>(modifies) - sizeof(Edge)); }
};
// One line of the host's cache, so that no op lies in two lines.
static_assert(sizeof(Block) == 64 && sizeof(Op) == 32);

}  // namespace slalom::vm
