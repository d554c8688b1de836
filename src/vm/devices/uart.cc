#include "vm/devices/uart.h"

#include <algorithm>

namespace slalom::vm {

namespace {

enum UartRegister : unsigned {
  kData,
  kInterruptEnable,
  kIdentification,
  kLineControl,
  kModemControl,
  kLineStatus,
  kModemStatus,
  kScratch
};

constexpr uint8_t kDivisorAccess = 0x80;  // line control
constexpr uint8_t kReceiveEnable = 1, kTransmitEnable = 2, kLineEnable = 4,
                  kModemEnable = 8;                                              // interrupt enable
constexpr uint8_t kDataReady = 0x01, kOverrun = 0x02, kTransmitterEmpty = 0x60;  // line status
constexpr uint8_t kLineEvent = 6, kReceived = 4, kTimeout = 12, kTransmitted = 2, kModemEvent = 0;

}  // namespace

uint8_t Uart::modem_lines() const {
  // Carrier, data set ready, clear to send. In loopback mode, outputs are connected to inputs.
  if (!loops_back()) return 0xb0;
  const uint8_t out = state_.modem_control;
  return static_cast<uint8_t>((out & 0x02) << 3 | (out & 0x01) << 5 | (out & 0x04) << 4 | (out & 0x08) << 4);
}

uint8_t Uart::interrupt_identification() const {
  const uint8_t enabled = state_.interrupt_enable;
  if ((enabled & kLineEnable) != 0 && state_.overrun) return kLineEvent;
  if ((enabled & kReceiveEnable) != 0 && !state_.received.empty()) {
    constexpr uint8_t kTriggers[] = {1, 4, 8, 14};
    const bool enough = !fifo_enabled() || state_.received.size() >= kTriggers[state_.fifo_control >> 6];
    return enough ? kReceived : kTimeout;
  }
  if ((enabled & kTransmitEnable) != 0 && state_.transmit_interrupt) return kTransmitted;
  if ((enabled & kModemEnable) != 0 && state_.modem_changes != 0) return kModemEvent;
  return kNoInterrupt;
}

bool Uart::take_edge() {
  const bool was = edge_;
  edge_ = false;
  return was;
}

void Uart::push_input(std::string_view bytes) {
  for (const char byte : bytes) state_.input.push_back(static_cast<uint8_t>(byte));
  refill();
}

void Uart::refill() {
  const bool ready = state_.polls == kPolling || (state_.interrupt_enable & kReceiveEnable) != 0;
  if (!ready || loops_back()) return;
  const size_t room = fifo_enabled() ? kFifoSize : 1;
  while (!state_.input.empty() && state_.received.size() < room) {
    state_.received.push_back(state_.input.front());
    state_.input.pop_front();
  }
}

void Uart::receive(uint8_t byte) {
  if (state_.received.size() >= (fifo_enabled() ? kFifoSize : 1)) {
    state_.overrun = true;
    return;
  }
  state_.received.push_back(byte);
}

uint8_t Uart::read(unsigned index) {
  if (index != kLineStatus) {
    state_.polls = 0;
  } else if (state_.polls < kPolling) {
    ++state_.polls;
    refill();
  }
  const bool divisor = (state_.line_control & kDivisorAccess) != 0;
  switch (index) {
    case kData: {
      if (divisor) return static_cast<uint8_t>(state_.divisor);
      if (state_.received.empty()) return 0;
      const uint8_t byte = state_.received.front();
      state_.received.pop_front();
      refill();
      // Without a FIFO every byte raises an interrupt. The line falls in between, for edge-triggered
      // controllers.
      edge_ = !fifo_enabled() && !state_.received.empty();
      return byte;
    }
    case kInterruptEnable:
      return divisor ? static_cast<uint8_t>(state_.divisor >> 8) : state_.interrupt_enable;
    case kIdentification: {
      const uint8_t identification = interrupt_identification();
      if (identification == kTransmitted) state_.transmit_interrupt = false;
      return static_cast<uint8_t>(identification | (fifo_enabled() ? 0xc0 : 0));
    }
    case kLineControl:
      return state_.line_control;
    case kModemControl:
      return state_.modem_control;
    case kLineStatus: {
      const auto status = static_cast<uint8_t>(
          kTransmitterEmpty | (state_.received.empty() ? 0 : kDataReady) | (state_.overrun ? kOverrun : 0));
      state_.overrun = false;
      return status;
    }
    case kModemStatus: {
      const auto status = static_cast<uint8_t>(modem_lines() | state_.modem_changes);
      state_.modem_changes = 0;
      return status;
    }
    default:
      return state_.scratch;
  }
}

void Uart::write(unsigned index, uint8_t value, std::string& output) {
  state_.polls = 0;
  const bool divisor = (state_.line_control & kDivisorAccess) != 0;
  switch (index) {
    case kData:
      if (divisor) {
        state_.divisor = static_cast<uint16_t>((state_.divisor & 0xff00) | value);
        return;
      }
      // The transmitter is full for an instant, so the line falls and rises.
      edge_ = interrupt_identification() == kTransmitted;
      if (loops_back())
        receive(value);
      else
        output.push_back(static_cast<char>(value));
      state_.transmit_interrupt = true;
      return;
    case kInterruptEnable:
      if (divisor) {
        state_.divisor = static_cast<uint16_t>((state_.divisor & 0xff) | value << 8);
        return;
      }
      // Enabling the transmit interrupt while the transmitter is empty raises one.
      if ((value & kTransmitEnable) != 0 && (state_.interrupt_enable & kTransmitEnable) == 0)
        state_.transmit_interrupt = true;
      state_.interrupt_enable = value & 15;
      refill();
      return;
    case kIdentification: {
      const bool switched = ((value ^ state_.fifo_control) & 1) != 0;
      // Discarded unread bytes are sent again, because kernels set up the FIFO when the receiver is already
      // on.
      if (switched || ((value & 1) != 0 && (value & 2) != 0)) {
        if (!loops_back())
          state_.input.insert(state_.input.begin(), state_.received.begin(), state_.received.end());
        state_.received.clear();
      }
      state_.fifo_control = (value & 1) != 0 ? value & 0xc9 : 0;
      refill();
      return;
    }
    case kLineControl:
      state_.line_control = value;
      return;
    case kModemControl:
      write_modem_control(value);
      return;
    case kLineStatus:
    case kModemStatus:
      return;  // read-only
    default:
      state_.scratch = value;
      return;
  }
}

void Uart::write_modem_control(uint8_t value) {
  const uint8_t before = modem_lines();
  state_.modem_control = value & 0x1f;
  const uint8_t changed = before ^ modem_lines();
  // The ring indicator only reports its end.
  const auto events =
      static_cast<uint8_t>((changed >> 4 & 0x0b) | ((changed & before & 0x40) != 0 ? 0x04 : 0));
  state_.modem_changes |= events;
  refill();
}

}  // namespace slalom::vm
