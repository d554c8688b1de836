#include "vm/devices/interrupts/io_apic.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

class IoApicTest : public testing::Test {
 protected:
  uint32_t get(uint8_t index) {
    EXPECT_TRUE(apic.write(0x00, index).known);
    uint32_t value = 0;
    EXPECT_TRUE(apic.read(0x10, value));
    return value;
  }
  std::optional<ApicMessage> set(uint8_t index, uint32_t value) {
    EXPECT_TRUE(apic.write(0x00, index).known);
    const auto effect = apic.write(0x10, value);
    EXPECT_TRUE(effect.known);
    return effect.message;
  }
  static constexpr uint8_t low(unsigned pin) { return static_cast<uint8_t>(0x10 + 2 * pin); }
  IoApic apic;
};

TEST_F(IoApicTest, HasTheRegistersOfAn82093) {
  EXPECT_EQ(get(1), 0x00170011u);
  EXPECT_EQ(get(low(23)), 0x10000u) << "masked";
  set(0, 0x0f000000);
  EXPECT_EQ(get(0), 0x0f000000u);
  set(low(5) + 1, 0x03000000);
  set(low(5), 0xffffffff);
  EXPECT_EQ(get(low(5)), 0x1afffu) << "delivery status and remote IRR are read-only";
  EXPECT_EQ(get(low(5) + 1), 0x03000000u);
  EXPECT_EQ(get(0x60), 0u);
  set(0x60, 1);
  uint32_t value = 0;
  EXPECT_FALSE(apic.read(0x20, value));
}

TEST_F(IoApicTest, AnEdgeIsSentOnceAndLostBehindTheMask) {
  set(low(4) + 1, 0x02000000);
  apic.set_line(4, true);
  EXPECT_FALSE(set(low(4), 0x0834)) << "it rose while masked";
  EXPECT_FALSE(apic.set_line(4, true)) << "no edge";
  apic.set_line(4, false);
  EXPECT_EQ(apic.set_line(4, true), (ApicMessage{.vector = 0x34, .logical = true, .destination = 2}));
  EXPECT_TRUE(apic.end_of_interrupt(0x34).empty());
}

TEST_F(IoApicTest, ALevelIsSentAgainAtItsEndWhileAsserted) {
  apic.set_line(9, true);
  const auto message = set(low(9), 0x8039);
  ASSERT_TRUE(message) << "unmasked while asserted";
  EXPECT_TRUE(message->level);
  EXPECT_EQ(get(low(9)), 0xc039u) << "remote IRR";
  apic.set_line(9, false);
  EXPECT_FALSE(apic.set_line(9, true)) << "in service";
  EXPECT_TRUE(apic.end_of_interrupt(0x38).empty());
  EXPECT_EQ(apic.end_of_interrupt(0x39).size(), 1u);
  apic.set_line(9, false);
  EXPECT_TRUE(apic.end_of_interrupt(0x39).empty());
  EXPECT_EQ(get(low(9)), 0x8039u);
}

TEST_F(IoApicTest, SwitchingToEdgeClearsRemoteIrr) {
  apic.set_line(9, true);
  set(low(9), 0x8039);
  set(low(9), 0x10039);
  set(low(9), 0x18039);
  EXPECT_EQ(get(low(9)), 0x18039u);
}

TEST_F(IoApicTest, NamesThePinOfAVector) {
  set(low(7), 0x41);
  EXPECT_EQ(apic.pin_of(0x41), 7);
  EXPECT_EQ(apic.pin_of(0x42), -1);
}

}  // namespace
}  // namespace slalom::vm
