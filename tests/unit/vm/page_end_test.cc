// Code whose blocks continue on the next page: links to that page must not outlive its contents.
#include <gtest/gtest.h>

#include "unit/vm/tiny_machine.h"

namespace slalom::vm {
namespace {

// A conditional jump is the last instruction of its page and is not taken. The code after it, on the next
// page, changes between two runs.
TEST(PageEnd, FallingThroughAJumpReachesTheNewCode) {
  constexpr uint8_t kStart[] = {0xb8, 0x01, 0x00, 0x00, 0x00,          // mov eax, 1
                                0x85, 0xc0,                            // test eax, eax
                                0xe9, 0xf2, 0x0f, 0x00, 0x00};         // jmp 0x10ffe
  constexpr uint8_t kEnd[] = {0x74, 0x10,                              // jz
                              0xff, 0x05, 0x00, 0x00, 0x10, 0x00,      // inc [0x100000]; then: dec
                              0xff, 0x05, 0x10, 0x00, 0x10, 0x00,      // inc [0x100010]
                              0x83, 0x3d, 0x10, 0x00, 0x10, 0x00, 2,   // cmp [0x100010], 2
                              0x7d, 0x0c,                              // jge to hlt
                              0xc6, 0x05, 0x01, 0x10, 0x01, 0x00, 13,  // mov byte [0x11001], 0x0d
                              0xe9, 0xdf, 0xef, 0xff, 0xff,            // jmp 0x10000
                              0xf4};                                   // hlt
  const std::unique_ptr<Pc> pc = make_tiny(kStart, 1);
  pc->ram().write(kTinyCode + 0xffe, kEnd);
  pc->run(1'000);
  uint8_t counts[0x14];
  pc->ram().read(0x100000, counts);
  EXPECT_EQ(counts[0x10], 2);
  EXPECT_EQ(counts[0], 0);  // incremented, then decremented
}

}  // namespace
}  // namespace slalom::vm
