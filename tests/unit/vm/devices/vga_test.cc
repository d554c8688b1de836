#include "vm/devices/vga.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

void print(Ram& ram, unsigned cell, std::string_view text) {
  for (const char c : text) {
    const uint8_t pair[] = {static_cast<uint8_t>(c), 0x07};
    ASSERT_TRUE(ram.write(0xb8000 + 2 * cell++, pair));
  }
}

TEST(Vga, RendersTheTextScreen) {
  auto ram = *Ram::make(1 << 20);
  Vga vga;
  EXPECT_EQ(vga.text_screen(*ram), std::string(25, '\n'));
  print(*ram, 0, "Hello   ");
  print(*ram, 81, "\xc9\xcd\xbb \x01");
  print(*ram, 24 * 80 + 79, "!");
  const std::string expected = "Hello\n ╔═╗ ☺\n" + std::string(22, '\n') + std::string(79, ' ') + "!\n";
  EXPECT_EQ(vga.text_screen(*ram), expected);
}

TEST(Vga, TheStartAddressScrolls) {
  auto ram = *Ram::make(1 << 20);
  Vga vga;
  print(*ram, 80, "second");
  vga.write(0x3d4, 0x0d);
  vga.write(0x3d5, 80);
  EXPECT_EQ(vga.text_screen(*ram).substr(0, 7), "second\n");
}

TEST(Vga, KeepsTheCursor) {
  Vga vga;
  vga.write(0x3d4, 0x0e);
  vga.write(0x3d5, 0x03);
  vga.write(0x3d4, 0x0f);
  vga.write(0x3d5, 0x25);
  EXPECT_EQ(vga.cursor(), 0x325);
  uint8_t value = 0;
  EXPECT_TRUE(vga.read(0, 0x3d5, value));
  EXPECT_EQ(value, 0x25);
  vga.write(0x3d4, 0x0a);
  vga.write(0x3d5, 0x20);
  EXPECT_EQ(vga.cursor(), -1);
}

TEST(Vga, AttributesAlternateBetweenIndexAndData) {
  Vga vga;
  uint8_t value = 0;
  vga.read(0, 0x3da, value);
  vga.write(0x3c0, 0x30);
  vga.write(0x3c0, 0x08);
  EXPECT_EQ(vga.state().attributes[0x10], 0x08);
  vga.write(0x3c0, 0x31);
  vga.read(0, 0x3da, value);
  vga.write(0x3c0, 0x32);
  vga.write(0x3c0, 0x55);
  EXPECT_EQ(vga.state().attributes[0x11], 0);
  EXPECT_EQ(vga.state().attributes[0x12], 0x55);
}

TEST(Vga, ThePaletteCountsThroughItsComponents) {
  Vga vga;
  vga.write(0x3c8, 255);
  for (const uint8_t value : {1, 2, 3, 4}) vga.write(0x3c9, value);
  EXPECT_EQ(vga.state().dac[767], 3);
  EXPECT_EQ(vga.state().dac[0], 4) << "it wraps";
}

TEST(Vga, GraphicsModesAreReported) {
  Vga vga;
  vga.write(0x3ce, 6);
  EXPECT_FALSE(vga.write(0x3cf, 0x05));
  EXPECT_TRUE(vga.write(0x3cf, 0x0e));
}

}  // namespace
}  // namespace slalom::vm
