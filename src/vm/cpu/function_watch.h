// FunctionWatch: kernel functions whose calls an observed CPU tells, with their arguments and results.
//
// A function is known by the virtual address of its first instruction, so it does not matter whether it is
// called or jumped to. A return is the matching one: to the return address that lay on the stack at the
// entry, with the stack pointer just above it. Functions that sleep may return on another CPU. Ring 0 only.
// Asked at the start of every observed block, so it must be quick; a tap without one pays nothing.
#pragma once

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
  void add(uint64_t entry) { entries_[entry] = true; }
  bool empty() const { return entries_.empty(); }

  // A block begins at `rip`, reached by `transfer` (an OpKind; 0: neither call nor return), before the
  // instruction number `executed` of the running slice.
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
  void set_open(Open open) { open_ = std::move(open); }  // another state of the machine was restored

 private:
  void enter(Cpu& cpu, Tap& tap, uint64_t rip, bool called, uint64_t executed);
  void leave(Cpu& cpu, Tap& tap, uint64_t rip, uint64_t executed);

  FlatMap<bool> entries_;
  Open open_;
};

}  // namespace slalom::vm
