// CallStacks: the open calls on every kernel stack, from the recorded calls and returns of ring 0.
//
// A stack is the aligned region that contains the stack pointer; interrupts have stacks of their own. A call
// ends when the stack pointer has risen above it, for whatever reason, so jumps out of several functions and
// switches of stacks need no special handling. Calls from before the recording are unknown.
//
// Two classes keep calls in other ways: KernelContext (detect/kernels) numbers whole chains of calls, because
// each access refers to one, and FunctionWatch (vm/cpu/observe) watches chosen functions without recorded
// calls.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace slalom {

// Size and alignment of the regions for detectors and reports, since a trace does not say them. A region of
// Linux's size contains one or several stacks.
inline constexpr uint64_t kKernelStack = 16384;

constexpr uint64_t kernel_stack_of(uint64_t address) {
  return address & ~(kKernelStack - 1);
}

// Frame has a member `uint64_t stack`: the address of the call's return address.
template <typename Frame>
class CallStacks {
 public:
  // The open calls of a stack, the outermost first. Empty if none is known.
  std::vector<Frame>& at(uint64_t region) { return stacks_[region]; }
  // The same; nullptr if there was no call on the stack yet.
  std::vector<Frame>* find(uint64_t region) {
    const auto found = stacks_.find(region);
    return found == stacks_.end() ? nullptr : &found->second;
  }
  const std::vector<Frame>* find(uint64_t region) const {
    return const_cast<CallStacks*>(this)->find(region);
  }
  void clear() { stacks_.clear(); }

  // Removes the calls that have ended when a call is made at this stack pointer, or when a return has left
  // it.
  static void end_before_call(std::vector<Frame>& frames, uint64_t pointer) {
    while (!frames.empty() && frames.back().stack <= pointer) frames.pop_back();
  }
  static void end_after_return(std::vector<Frame>& frames, uint64_t pointer) {
    while (!frames.empty() && frames.back().stack < pointer) frames.pop_back();
  }

 private:
  std::unordered_map<uint64_t, std::vector<Frame>> stacks_;  // by region; never iterated
};

}  // namespace slalom
