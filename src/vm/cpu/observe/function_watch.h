// FunctionWatch: reports calls and returns of chosen kernel functions on observed CPUs, with arguments and
// results.
//
// A function is identified by the virtual address of its first instruction, so it may be called or jumped to.
// A return matches an entry if it goes to the return address that was on the stack at the entry, with the
// stack pointer just above it. Functions that sleep may return on another CPU. Ring 0 only. It is consulted
// at the start of every observed block, so it must be fast. A tap without watched functions pays nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/flat_map.h"

namespace slalom::vm {

struct Cpu;
struct Tap;

class FunctionWatch {
 public:
  void add(uint64_t entry) {
    entries_[entry] = true;
    sieve_[bit(entry) / 64] |= uint64_t{1} << bit(entry) % 64;
  }
  // false: no watched function begins there.
  bool may_begin(uint64_t rip) const { return (sieve_[bit(rip) / 64] >> bit(rip) % 64 & 1) != 0; }
  // false: a return that leaves this stack pointer ends no watched function.
  bool may_end(uint64_t stack) const { return (open_sieve_ & open_bit(stack - 8)) != 0; }

  // Call this when a block begins at `rip`. `transfer`: OpKind of the call or return that led there; 0 for
  // other jumps. `executed`: number of instructions of the running slice before it. Calls may be omitted if
  // neither may_begin(), nor may_end() for a return, is true.
  void at_block(Cpu& cpu, Tap& tap, uint64_t rip, uint8_t transfer, uint64_t executed);

  // A call that has not returned.
  struct Frame {
    uint64_t function = 0;
    uint64_t return_address = 0;
    uint64_t step = 0;
    uint64_t retired = 0;  // the CPU's own count
    uint64_t arguments[6] = {};
  };
  // By stack pointer at the entry. Several frames at one stack pointer: each function has jumped to the next.
  using Open = std::map<uint64_t, std::vector<Frame>>;
  const Open& open() const { return open_; }
  void set_open(Open open) {  // after another state of the machine was restored
    open_ = std::move(open);
    sieve_open();
  }

 private:
  std::vector<Frame>& frames_at(uint64_t stack);
  void enter(Cpu& cpu, Tap& tap, uint64_t rip, bool called, uint64_t executed);
  void leave(Cpu& cpu, Tap& tap, uint64_t rip, uint64_t executed);

  // A filter, since most blocks begin no watched function.
  static uint64_t bit(uint64_t address) { return (address ^ address >> 16) % 4096; }
  std::array<uint64_t, 64> sieve_{};
  FlatMap<bool> entries_;
  Open open_;
  // The same for stack pointers: one bit for each entry of open_. Entries may share a bit.
  static uint64_t open_bit(uint64_t stack) { return uint64_t{1} << (stack >> 3 ^ stack >> 9) % 64; }
  void sieve_open() {
    open_sieve_ = 0;
    for (const auto& [stack, frames] : open_) open_sieve_ |= open_bit(stack);
  }
  uint64_t open_sieve_ = 0;
  std::vector<Open::node_type> spare_;  // reused, because functions come and go
};

}  // namespace slalom::vm
