#include "vm/cpu/observe/shadow_stacks.h"

namespace slalom::vm {
namespace {

constexpr size_t kMostFrames = 512;  // deeper frames are dropped

}  // namespace

void ShadowStacks::on_transfer(const Access& transfer) {
  const uint64_t stack = transfer.value;
  if (transfer.op() == OpKind::Call) {
    std::vector<Frame>& frames = stacks_[regions_.base_of(stack)];
    while (!frames.empty() && frames.back().stack <= stack) frames.pop_back();
    if (frames.size() < kMostFrames)
      frames.push_back({.stack = stack, .call = transfer.pc().raw, .function = transfer.address().raw});
    return;
  }
  const auto found = stacks_.find(regions_.base_of(stack - 8));  // the address of the return address
  if (found == stacks_.end()) return;
  std::vector<Frame>& frames = found->second;
  while (!frames.empty() && frames.back().stack < stack) frames.pop_back();
}

std::vector<ShadowStacks::Frame> ShadowStacks::frames(uint64_t stack_pointer) const {
  const auto found = stacks_.find(regions_.base_of(stack_pointer));
  if (found == stacks_.end()) return {};
  std::vector<Frame> alive;
  for (auto frame = found->second.rbegin(); frame != found->second.rend(); ++frame)
    if (frame->stack >= stack_pointer) alive.push_back(*frame);
  return alive;
}

size_t ShadowStacks::depth(uint64_t stack_pointer) const {
  return frames(stack_pointer).size();
}

}  // namespace slalom::vm
