#include "trace/call_stacks.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

struct Frame {
  uint64_t stack = 0;
};
using Stacks = CallStacks<Frame>;

TEST(CallStacks, AStackIsItsAlignedRegion) {
  EXPECT_EQ(kernel_stack_of(0x7fff), 0x4000u);
  EXPECT_EQ(kernel_stack_of(0x8000), 0x8000u);
  Stacks stacks;
  stacks.at(0x4000).push_back({0x7ff0});
  ASSERT_NE(stacks.find(0x4000), nullptr);
  EXPECT_EQ(stacks.find(0x4000)->size(), 1u);
  EXPECT_EQ(stacks.find(0x8000), nullptr);
}

// A return leaves the pointer just above the return address, and a call puts it there.
TEST(CallStacks, CallsEndWhereThePointerRoseAboveThem) {
  std::vector<Frame> frames = {{0x7ff0}, {0x7fd0}, {0x7fc0}};
  Stacks::end_after_return(frames, 0x7fc8);
  EXPECT_EQ(frames.size(), 2u);
  Stacks::end_after_return(frames, 0x7fd0);  // of a function that a function called here has replaced
  EXPECT_EQ(frames.size(), 2u);
  Stacks::end_before_call(frames, 0x7fd0);
  EXPECT_EQ(frames.size(), 1u);
  Stacks::end_after_return(frames, 0x7ff8);
  EXPECT_TRUE(frames.empty());
}

}  // namespace
}  // namespace slalom
