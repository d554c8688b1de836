// ShadowStacks: who called whom, on every kernel stack, from the calls and returns that a tap records.
//
// A stack is the aligned region that its pointer lies in; interrupts have stacks of their own. A frame lives
// until the stack pointer has risen above it, however that happened, so jumps out of several functions and
// switches of stacks need no special care. Frames from before the recording began are unknown.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/access.h"

namespace slalom::vm {

class ShadowStacks {
 public:
  struct Frame {
    uint64_t stack = 0;     // where its return address lies
    uint64_t call = 0;      // the call
    uint64_t function = 0;  // what was called
  };
  // A Call or Return of ring 0; others are not for here.
  void on_transfer(const Access& transfer);
  // The calls that lead to a stack pointer, innermost first.
  std::vector<Frame> frames(uint64_t stack_pointer) const;
  size_t depth(uint64_t stack_pointer) const;

 private:
  std::unordered_map<uint64_t, std::vector<Frame>> stacks_;  // by region; never iterated
};

}  // namespace slalom::vm
