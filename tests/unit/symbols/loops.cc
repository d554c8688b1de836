#include "symbols/loops.h"

#include <gtest/gtest.h>

#include <vector>

namespace slalom {
namespace {

using Code = std::vector<uint8_t>;

TEST(Loops, NeedAJumpBackward) {
  EXPECT_FALSE(may_loop(Code{}));
  EXPECT_FALSE(may_loop(Code{0x90, 0xc3}));                          // nop; ret
  EXPECT_FALSE(may_loop(Code{0x74, 0x01, 0x90, 0xc3}));              // je over the nop
  EXPECT_FALSE(may_loop(Code{0xe8, 0xf0, 0xff, 0xff, 0xff, 0xc3}));  // a call backward
  EXPECT_TRUE(may_loop(Code{0x90, 0x75, 0xfd, 0xc3}));               // jne to the nop
  EXPECT_TRUE(may_loop(Code{0xeb, 0xfe}));                           // a jump to itself
  EXPECT_TRUE(may_loop(Code{0xe2, 0xfe}));                           // loop
}

TEST(Loops, AreNotLeft) {
  EXPECT_FALSE(may_loop(Code{0x90, 0xe9, 0x00, 0xf0, 0xff, 0xff}));  // to another function, before this one
  EXPECT_FALSE(may_loop(Code{0x90, 0x75, 0xfc}));                    // to just before the piece
}

TEST(Loops, ArePossibleWhereItCannotBeSaid) {
  EXPECT_TRUE(may_loop(Code{0xff, 0xe0}));  // jmp *%rax
  EXPECT_TRUE(may_loop(Code{0x06}));        // no instruction
  EXPECT_TRUE(may_loop(Code{0xe9, 0x00}));  // half of an instruction
}

}  // namespace
}  // namespace slalom
