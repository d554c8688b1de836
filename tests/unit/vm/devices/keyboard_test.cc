#include "vm/devices/keyboard.h"

#include <gtest/gtest.h>

#include <vector>

namespace slalom::vm {
namespace {

class KeyboardTest : public testing::Test {
 protected:
  uint8_t in(uint16_t port) {
    uint8_t value = 0;
    EXPECT_TRUE(keyboard.read(port, value));
    return value;
  }
  std::vector<int> replies() {
    std::vector<int> all;
    while (in(0x64) & 1) all.push_back(in(0x60));
    return all;
  }
  using Bytes = std::vector<int>;
  Keyboard keyboard;
};

TEST_F(KeyboardTest, KeysInterruptOneByOne) {
  EXPECT_FALSE(keyboard.line());
  EXPECT_TRUE(keyboard.push_keys(std::vector<uint8_t>{0x1e, 0x9e}));
  EXPECT_TRUE(keyboard.line());
  EXPECT_EQ(in(0x64) & 1, 1);
  EXPECT_EQ(in(0x60), 0x1e);
  EXPECT_TRUE(keyboard.take_edge());
  EXPECT_TRUE(keyboard.line());
  EXPECT_EQ(in(0x60), 0x9e);
  EXPECT_FALSE(keyboard.line());
  EXPECT_EQ(in(0x60), 0x9e) << "nothing new: the last byte again";
}

TEST_F(KeyboardTest, SelfTestsAndIdentification) {
  keyboard.write(0x64, 0xaa);
  EXPECT_EQ(replies(), Bytes({0x55}));
  keyboard.write(0x64, 0xab);
  EXPECT_EQ(replies(), Bytes({0x00}));
  keyboard.write(0x60, 0xff);
  EXPECT_EQ(replies(), Bytes({0xfa, 0xaa}));
  keyboard.write(0x60, 0xf2);
  EXPECT_EQ(replies(), Bytes({0xfa, 0xab, 0x41})) << "83 after translation";
  keyboard.write(0x60, 0xee);
  EXPECT_EQ(replies(), Bytes({0xee}));
  keyboard.write(0x60, 0xed);
  keyboard.write(0x60, 0x07);
  EXPECT_EQ(replies(), Bytes({0xfa, 0xfa}));
  keyboard.write(0x60, 0x01);
  EXPECT_EQ(replies(), Bytes({0xfe}));
}

TEST_F(KeyboardTest, TheConfigurationSwitchesInterruptsAndTheKeyboard) {
  keyboard.write(0x64, 0x20);
  EXPECT_EQ(replies(), Bytes({0x45}));
  keyboard.write(0x64, 0x60);
  keyboard.write(0x60, 0x44);
  keyboard.push_keys(std::vector<uint8_t>{0x1c});
  EXPECT_FALSE(keyboard.line());
  EXPECT_EQ(in(0x64) & 1, 1) << "polling works";
  keyboard.write(0x64, 0xad);
  EXPECT_EQ(in(0x64) & 1, 0);
  keyboard.write(0x64, 0xae);
  EXPECT_EQ(replies(), Bytes({0x1c}));
}

// The sequence of boot loaders that enables address line 20.
TEST_F(KeyboardTest, TheOutputPortHoldsAddressLine20) {
  keyboard.write(0x64, 0xd0);
  EXPECT_EQ(replies(), Bytes({0x03}));
  EXPECT_TRUE(keyboard.write(0x64, 0xd1));
  EXPECT_TRUE(keyboard.write(0x60, 0xdf));
  EXPECT_TRUE(keyboard.write(0x64, 0xdf));
  EXPECT_FALSE(keyboard.take_reset());
  EXPECT_FALSE(keyboard.write(0x64, 0xdd)) << "wrapping memory is not implemented";
}

TEST_F(KeyboardTest, ResetsTheProcessor) {
  EXPECT_TRUE(keyboard.write(0x64, 0xfe));
  EXPECT_TRUE(keyboard.take_reset());
  EXPECT_FALSE(keyboard.take_reset());
  keyboard.write(0x64, 0xff);
  EXPECT_FALSE(keyboard.take_reset()) << "pulses no line";
}

TEST_F(KeyboardTest, KeysWithoutTranslationAreReported) {
  keyboard.write(0x64, 0x60);
  keyboard.write(0x60, 0x05);
  EXPECT_FALSE(keyboard.push_keys(std::vector<uint8_t>{0x1e}));
}

TEST_F(KeyboardTest, UnreadRepliesDoNotPileUp) {
  for (int i = 0; i < 10000; ++i) keyboard.write(0x64, 0xaa);
  EXPECT_TRUE(Keyboard::valid(keyboard.state()));
}

}  // namespace
}  // namespace slalom::vm
