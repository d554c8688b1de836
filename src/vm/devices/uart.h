// Uart: a 16550A serial port, COM1 (ports 3f8 to 3ff, interrupt line 4).
//
// Output is sent at once, and the transmitter is always empty, so that guests do not spend their time
// polling. Input waits in a queue that the host fills. It is only sent while the guest has enabled receive
// interrupts or polls for data. So a kernel that empties the port during set-up loses nothing. As in other
// emulators, the interrupt does not depend on OUT2, because teaching kernels forget to set it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace slalom::vm {

class Uart {
 public:
  struct State {
    uint8_t interrupt_enable = 0;
    uint8_t fifo_control = 0;
    uint8_t line_control = 0;
    uint8_t modem_control = 0;
    uint8_t modem_changes = 0;  // low half of the modem status register
    uint8_t scratch = 0;
    uint16_t divisor = 12;  // 9600 baud; no effect
    bool overrun = false;
    bool transmit_interrupt = false;
    uint8_t polls = 0;             // consecutive reads of the line status, up to kPolling
    std::deque<uint8_t> received;  // the FIFO, or the single receive register
    std::deque<uint8_t> input;     // not yet sent to the port
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.interrupt_enable, s.fifo_control, s.line_control, s.modem_control, s.modem_changes, s.scratch,
        s.divisor, s.overrun, s.transmit_interrupt, s.polls, s.received, s.input);
    }
  };

  static constexpr uint16_t kFirstPort = 0x3f8;
  static constexpr uint16_t kPorts = 8;

  const State& state() const { return state_; }
  static bool valid(const State& state) {
    return state.received.size() <= kFifoSize && state.polls <= kPolling;
  }
  void set_state(const State& state) { state_ = state; }

  // `index`: register 0 to 7. Sent bytes are appended to `output`.
  uint8_t read(unsigned index);
  void write(unsigned index, uint8_t value, std::string& output);
  void push_input(std::string_view bytes);
  bool line() const { return interrupt_identification() != kNoInterrupt; }
  bool take_edge();  // the line fell and rose within one access

 private:
  static constexpr size_t kFifoSize = 16;
  static constexpr uint8_t kNoInterrupt = 1;
  static constexpr uint8_t kPolling = 4;

  bool fifo_enabled() const { return (state_.fifo_control & 1) != 0; }
  bool loops_back() const { return (state_.modem_control & 0x10) != 0; }
  uint8_t interrupt_identification() const;
  uint8_t modem_lines() const;
  void receive(uint8_t byte);
  void refill();
  void write_modem_control(uint8_t value);

  State state_;
  bool edge_ = false;
};

}  // namespace slalom::vm
