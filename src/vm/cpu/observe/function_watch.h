// FunctionWatch: kernel functions whose calls an observed CPU tells, with their arguments and results.
//
// A function is known by the virtual address of its first instruction, so it does not matter whether it is
// called or jumped to. A return is the matching one: to the return address that lay on the stack at the
// entry, with the stack pointer just above it. Functions that sleep may return on another CPU. Ring 0 only.
// Asked at the start of every observed block, so it must be quick; a tap without one pays nothing.
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
  // False: no function that is watched begins there.
  bool may_begin(uint64_t rip) const { return (sieve_[bit(rip) / 64] >> bit(rip) % 64 & 1) != 0; }
  // False: a return that leaves the stack pointer here is none of such a function.
  bool may_end(uint64_t stack) const { return (open_sieve_ & open_bit(stack - 8)) != 0; }

  // A block begins at `rip`, reached by `transfer` (an OpKind; 0: neither call nor return), before the
  // instruction number `executed` of the running slice. Nothing is missed if it is told only of those where
  // one may begin, or may end by a return.
  void at_block(Cpu& cpu, Tap& tap, uint64_t rip, uint8_t transfer, uint64_t executed);

  // What was entered and has not returned.
  struct Frame {
    uint64_t function = 0;
    uint64_t return_address = 0;
    uint64_t step = 0;
    uint64_t retired = 0;  // the CPU's own count
    uint64_t arguments[6] = {};
  };
  // By the stack pointer at the entry. Several: each jumped to the next one.
  using Open = std::map<uint64_t, std::vector<Frame>>;
  const Open& open() const { return open_; }
  void set_open(Open open) {  // another state of the machine was restored
    open_ = std::move(open);
    sieve_open();
  }

 private:
  std::vector<Frame>& frames_at(uint64_t stack);
  void enter(Cpu& cpu, Tap& tap, uint64_t rip, bool called, uint64_t executed);
  void leave(Cpu& cpu, Tap& tap, uint64_t rip, uint64_t executed);

  // Most blocks begin no function that is watched.
  static uint64_t bit(uint64_t address) { return (address ^ address >> 16) % 4096; }
  std::array<uint64_t, 64> sieve_{};
  FlatMap<bool> entries_;
  Open open_;
  // The same for stack pointers: a bit for each of open_, shared by some.
  static uint64_t open_bit(uint64_t stack) { return uint64_t{1} << (stack >> 3 ^ stack >> 9) % 64; }
  void sieve_open() {
    open_sieve_ = 0;
    for (const auto& [stack, frames] : open_) open_sieve_ |= open_bit(stack);
  }
  uint64_t open_sieve_ = 0;
  std::vector<Open::node_type> spare_;  // to be used again: functions come and go
};

}  // namespace slalom::vm
