// FlowStacks: where the kernel stack of each flow is, and when a flow last made visible progress.
#pragma once

#include <cstdint>
#include <vector>

namespace slalom::vm {

struct FlowStacks {
  struct Stack {
    bool entered = false;  // the flow has just entered the kernel
    uint64_t base = 0;     // 0 if unknown
    uint64_t sleeps = 0;   // stack pointer of the flow when its thread was switched out; 0 if it was not
  };
  std::vector<Stack> cpus;
  uint64_t progress = 0;  // virtual time when a flow last entered or left the kernel
};

}  // namespace slalom::vm
