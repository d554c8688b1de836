// ShadowStacks: the call chains on every kernel stack, from the calls and returns that a tap records.
//
// trace/call_stacks.h says when a call ends.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/access.h"
#include "trace/call_stacks.h"
#include "vm/cpu/observe/tap.h"

namespace slalom::vm {

class ShadowStacks {
 public:
  struct Frame {
    uint64_t stack = 0;     // address of its return address
    uint64_t call = 0;      // address of the call instruction
    uint64_t function = 0;  // the called function
  };
  explicit ShadowStacks(const KernelStacks& regions) : regions_(regions) {}

  // `transfer` must be a Call or Return of ring 0.
  void on_transfer(const Access& transfer);
  // Returns the calls that lead to a stack pointer, innermost first.
  std::vector<Frame> frames(uint64_t stack_pointer) const;
  size_t depth(uint64_t stack_pointer) const;

 private:
  KernelStacks regions_;
  CallStacks<Frame> stacks_;
};

}  // namespace slalom::vm
