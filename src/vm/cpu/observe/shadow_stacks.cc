#include "vm/cpu/observe/shadow_stacks.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostFrames = 512;  // deeper frames are dropped

}  // namespace

void ShadowStacks::on_transfer(const Access& transfer) {
  const uint64_t stack = transfer.value;
  if (transfer.op() == OpKind::Call) {
    std::vector<Frame>& frames = stacks_.at(regions_.base_of(stack));
    stacks_.end_before_call(frames, stack);
    if (frames.size() < kMostFrames)
      frames.push_back({.stack = stack, .call = transfer.pc().raw, .function = transfer.address().raw});
    return;
  }
  // The return address was below the pointer.
  if (std::vector<Frame>* frames = stacks_.find(regions_.base_of(stack - 8)))
    stacks_.end_after_return(*frames, stack);
}

std::vector<ShadowStacks::Frame> ShadowStacks::frames(uint64_t stack_pointer) const {
  const std::vector<Frame>* all = stacks_.find(regions_.base_of(stack_pointer));
  if (all == nullptr) return {};
  std::vector<Frame> alive;
  for (auto frame = all->rbegin(); frame != all->rend(); ++frame)
    if (frame->stack >= stack_pointer) alive.push_back(*frame);
  return alive;
}

size_t ShadowStacks::depth(uint64_t stack_pointer) const {
  return frames(stack_pointer).size();
}

}  // namespace slalom::vm
