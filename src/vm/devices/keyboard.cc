#include "vm/devices/keyboard.h"

namespace slalom::vm {

namespace {

constexpr uint16_t kKeyboardData = 0x60, kKeyboardCommand = 0x64;
constexpr uint8_t kTranslates = 0x40, kKeyboardOff = 0x10;  // configuration
constexpr uint8_t kAcknowledge = 0xfa, kResend = 0xfe, kTestPassed = 0xaa;
constexpr uint8_t kAddressLine20 = 0x02;  // output port

}  // namespace

bool Keyboard::take_edge() {
  const bool was = edge_;
  edge_ = false;
  return was;
}

bool Keyboard::take_reset() {
  const bool was = reset_;
  reset_ = false;
  return was;
}

void Keyboard::reply(uint8_t byte) {
  if (state_.replies.size() < kMostReplies) state_.replies.push_back(byte);
}

bool Keyboard::push_keys(std::span<const uint8_t> scan_codes) {
  state_.keys.insert(state_.keys.end(), scan_codes.begin(), scan_codes.end());
  return (state_.configuration & kTranslates) != 0 || scan_codes.empty();
}

bool Keyboard::read(uint16_t port, uint8_t& value) {
  if (port == kKeyboardCommand) {
    // Bits: not locked, self test passed, whether the last byte was a command, whether output is available.
    value = static_cast<uint8_t>(0x10 | (state_.configuration & 0x04) | (state_.last_was_command ? 0x08 : 0) |
                                 (has_output() ? 0x01 : 0));
    return true;
  }
  if (port != kKeyboardData) return false;
  std::deque<uint8_t>& source = !state_.replies.empty() || !keys_flow() ? state_.replies : state_.keys;
  value = state_.last_sent;
  if (source.empty()) return true;
  value = state_.last_sent = source.front();
  source.pop_front();
  edge_ = true;  // the next byte raises a new interrupt
  return true;
}

bool Keyboard::write(uint16_t port, uint8_t value) {
  if (port == kKeyboardCommand) {
    state_.last_was_command = true;
    state_.controller_command = 0;
    return controller_command(value);
  }
  if (port != kKeyboardData) return false;
  state_.last_was_command = false;
  if (const uint8_t command = state_.controller_command; command != 0) {
    state_.controller_command = 0;
    return controller_data(command, value);
  }
  state_.keyboard_off = false;  // the controller switches the keyboard on to talk to it
  state_.configuration &= static_cast<uint8_t>(~kKeyboardOff);
  keyboard_data(value);
  return true;
}

bool Keyboard::controller_command(uint8_t command) {
  switch (command) {
    case 0x20:
      reply(state_.configuration);
      return true;
    case 0x60:  // write the configuration
    case 0xd1:  // write the output port
    case 0xd2:  // act as if the keyboard had sent the byte
    case 0xd3:  // act as if the mouse had sent the byte
    case 0xd4:  // to the mouse
      state_.controller_command = command;
      return true;
    case 0xa7:
    case 0xa8:
      return true;  // mouse off, on
    case 0xa9:
      reply(0x02);
      return true;  // the mouse's clock line is stuck, because there is no mouse
    case 0xaa:
      state_.configuration |= 0x04;
      reply(0x55);
      return true;
    case 0xab:
      reply(0x00);
      return true;
    case 0xad:
    case 0xae:
      state_.keyboard_off = command == 0xad;
      state_.configuration = static_cast<uint8_t>((state_.configuration & ~kKeyboardOff) |
                                                  (state_.keyboard_off ? kKeyboardOff : 0));
      return true;
    case 0xc0:
      reply(0x80);
      return true;  // not locked
    case 0xd0:
      reply(state_.output_port);
      return true;
    case 0xdd:
      return write_output_port(state_.output_port & static_cast<uint8_t>(~kAddressLine20));
    case 0xdf:
      return write_output_port(state_.output_port | kAddressLine20);
    default:
      if (command < 0xf0) return false;
      if ((command & 1) == 0) reset_ = true;  // pulses output lines; the lowest one resets the processor
      return true;
  }
}

bool Keyboard::controller_data(uint8_t command, uint8_t value) {
  switch (command) {
    case 0x60:
      state_.configuration = value;
      state_.keyboard_off = (value & kKeyboardOff) != 0;
      return true;
    case 0xd1:
      return write_output_port(value);
    case 0xd2:
      reply(value);
      return true;
    case 0xd3:
      return false;
    default:
      return true;  // no mouse answers
  }
}

bool Keyboard::write_output_port(uint8_t value) {
  if ((value & 1) == 0) reset_ = true;
  state_.output_port = value | 1;
  return (value & kAddressLine20) != 0;
}

void Keyboard::keyboard_data(uint8_t value) {
  if (const uint8_t command = state_.keyboard_command; command != 0) {
    state_.keyboard_command = 0;
    reply(kAcknowledge);
    if (command == 0xf0 && value == 0)
      reply((state_.configuration & kTranslates) != 0 && state_.scan_set == 2 ? 0x41 : state_.scan_set);
    if (command == 0xf0 && value >= 1 && value <= 3) state_.scan_set = value;
    return;
  }
  switch (value) {
    case 0xed:  // lamps
    case 0xf0:  // scan code set
    case 0xf3:  // repeat rate
      state_.keyboard_command = value;
      reply(kAcknowledge);
      return;
    case 0xee:
      reply(0xee);
      return;
    case 0xf2:
      reply(kAcknowledge);
      reply(0xab);
      reply((state_.configuration & kTranslates) != 0 ? 0x41 : 0x83);
      return;
    case 0xf4:
    case 0xf5:
    case 0xf6:
      state_.scanning = value != 0xf5;
      reply(kAcknowledge);
      return;
    case 0xfe:
      reply(state_.last_sent);
      return;
    case 0xff:
      state_.scanning = true;
      state_.scan_set = 2;
      state_.keys.clear();
      reply(kAcknowledge);
      reply(kTestPassed);
      return;
    default:
      reply(kResend);
  }
}

}  // namespace slalom::vm
