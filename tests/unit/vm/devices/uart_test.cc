#include "vm/devices/uart.h"

#include <gtest/gtest.h>

namespace slalom::vm {
namespace {

enum : unsigned {
  kData,
  kEnable,
  kIdentification,
  kLineControl,
  kModemControl,
  kLineStatus,
  kModemStatus,
  kScratch
};

class UartTest : public testing::Test {
 protected:
  void write(unsigned index, uint8_t value) { uart.write(index, value, output); }
  Uart uart;
  std::string output;
};

TEST_F(UartTest, SendsAtOnce) {
  for (const char c : std::string("hello")) {
    EXPECT_EQ(uart.read(kLineStatus), 0x60);
    write(kData, static_cast<uint8_t>(c));
  }
  EXPECT_EQ(output, "hello");
}

// The probe of Linux's 8250 driver: interrupt enable bits, loopback of the modem lines, FIFO, scratch
// register.
TEST_F(UartTest, IsRecognisedAsA16550A) {
  write(kEnable, 0x0f);
  EXPECT_EQ(uart.read(kEnable) & 0x0f, 0x0f);
  write(kEnable, 0);
  EXPECT_EQ(uart.read(kEnable) & 0x0f, 0);
  write(kModemControl, 0x1a);
  EXPECT_EQ(uart.read(kModemStatus) & 0xf0, 0x90);
  write(kModemControl, 0);
  write(kIdentification, 0x01);
  EXPECT_EQ(uart.read(kIdentification) >> 6, 3);
  write(kScratch, 0x5a);
  EXPECT_EQ(uart.read(kScratch), 0x5a);
  write(kLineControl, 0x80);
  write(kData, 0x01);
  write(kEnable, 0x02);
  EXPECT_EQ(uart.state().divisor, 0x201);
  EXPECT_EQ(output, "") << "the divisor is not sent";
  write(kLineControl, 0x03);
  EXPECT_EQ(uart.read(kEnable), 0);
}

TEST_F(UartTest, TransmitInterruptsComeAndAreReadAway) {
  EXPECT_FALSE(uart.line());
  write(kEnable, 0x02);
  EXPECT_TRUE(uart.line()) << "the transmitter is empty";
  EXPECT_EQ(uart.read(kIdentification) & 0x0f, 0x02);
  EXPECT_FALSE(uart.line());
  EXPECT_EQ(uart.read(kIdentification) & 0x0f, 0x01);
  write(kData, 'x');
  EXPECT_TRUE(uart.line());
  EXPECT_FALSE(uart.take_edge());
  write(kData, 'y');
  EXPECT_TRUE(uart.take_edge()) << "the line fell and rose";
}

TEST_F(UartTest, InputWaitsUntilTheGuestIsReady) {
  uart.push_input("abc");
  write(kModemControl, 0x0b);
  for (int i = 0; i < 3; ++i) {  // Linux clears the port in this way during set-up
    uart.read(kLineStatus);
    EXPECT_EQ(uart.read(kData), 0);
  }
  write(kEnable, 1);
  EXPECT_EQ(uart.read(kLineStatus) & 1, 1);
  EXPECT_EQ(uart.read(kData), 'a');
  EXPECT_EQ(uart.read(kData), 'b');
  EXPECT_EQ(uart.read(kData), 'c');
  EXPECT_EQ(uart.read(kLineStatus) & 1, 0);
}

TEST_F(UartTest, AGuestThatPollsGetsItsInput) {
  uart.push_input("ab");
  for (const char expected : {'a', 'b'}) {
    int asked = 1;
    while ((uart.read(kLineStatus) & 1) == 0 && asked < 100) ++asked;
    EXPECT_LT(asked, 10);
    EXPECT_EQ(uart.read(kData), expected);
  }
}

TEST_F(UartTest, ReceiveInterruptsByTriggerLevelAndTimeout) {
  write(kIdentification, 0x81);  // 8 bytes
  write(kEnable, 0x05);
  uart.push_input("1234567");
  EXPECT_EQ(uart.read(kIdentification) & 0x0f, 0x0c) << "fewer than eight: after a timeout";
  uart.push_input("8");
  EXPECT_EQ(uart.read(kIdentification) & 0x0f, 0x04);
  EXPECT_TRUE(uart.line()) << "reading the identification does not end a receive interrupt";
  for (int i = 0; i < 8; ++i) EXPECT_EQ(uart.read(kData), '1' + i);
  EXPECT_FALSE(uart.line());
}

TEST_F(UartTest, LongInputIsLostNowhere) {
  write(kIdentification, 0xc1);
  write(kEnable, 0x01);
  std::string sent, received;
  for (int i = 0; i < 1000; ++i) sent += static_cast<char>('a' + i % 26);
  uart.push_input(sent);
  EXPECT_EQ(uart.state().received.size(), 16u);
  while (uart.read(kLineStatus) & 1) received += static_cast<char>(uart.read(kData));
  EXPECT_EQ(received, sent);
  EXPECT_FALSE(uart.line());
}

TEST_F(UartTest, LoopbackReceivesWhatIsSentAndOverruns) {
  write(kModemControl, 0x10);
  write(kEnable, 0x04);
  write(kData, 'q');
  write(kData, 'r');
  EXPECT_EQ(output, "");
  EXPECT_EQ(uart.read(kIdentification) & 0x0f, 0x06);
  EXPECT_EQ(uart.read(kLineStatus) & 0x03, 0x03);
  EXPECT_EQ(uart.read(kLineStatus) & 0x03, 0x01) << "the error is read away";
  EXPECT_EQ(uart.read(kData), 'q');
}

TEST_F(UartTest, ModemChangesAreReportedOnce) {
  EXPECT_EQ(uart.read(kModemStatus), 0xb0);
  write(kEnable, 0x08);
  write(kModemControl, 0x10);  // in loopback mode all lines are off
  EXPECT_EQ(uart.read(kIdentification) & 0x0f, 0x00);
  EXPECT_EQ(uart.read(kModemStatus), 0x0b);
  EXPECT_FALSE(uart.line());
}

}  // namespace
}  // namespace slalom::vm
