// Keyboard: the i8042 controller with a keyboard and no mouse (ports 60 and 64, interrupt line 1).
//
// The host sends scan codes of set 1. That is the set that kernels see while the controller translates, as it
// does after power-on. A guest that turns translation off and then receives keys would need set 2; that is
// reported as not implemented. So is switching address line 20 off, since memory does not wrap at 1 MiB here.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>

namespace slalom::vm {

class Keyboard {
 public:
  struct State {
    uint8_t configuration = 0x45;    // translation on, interrupt on, self test passed
    uint8_t controller_command = 0;  // a command that waits for its data byte; 0: none
    uint8_t keyboard_command = 0;
    uint8_t output_port = 0x03;  // not in reset, address line 20 on
    uint8_t last_sent = 0;
    uint8_t scan_set = 2;
    bool last_was_command = false;
    bool keyboard_off = false;  // switched off by the controller
    bool scanning = true;
    std::deque<uint8_t> replies;  // sent before keys
    std::deque<uint8_t> keys;
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.configuration, s.controller_command, s.keyboard_command, s.output_port, s.last_sent, s.scan_set,
        s.last_was_command, s.keyboard_off, s.scanning, s.replies, s.keys);
    }
  };

  const State& state() const { return state_; }
  static bool valid(const State& state) { return state.replies.size() <= kMostReplies; }
  void set_state(const State& state) { state_ = state; }

  bool read(uint16_t port, uint8_t& value);
  // These return false if the function is not implemented.
  bool write(uint16_t port, uint8_t value);
  bool push_keys(std::span<const uint8_t> scan_codes);
  bool line() const { return (state_.configuration & 1) != 0 && has_output(); }
  bool take_edge();   // the line fell and rose within one access
  bool take_reset();  // the guest activated the reset line

 private:
  static constexpr size_t kMostReplies = 32;

  bool keys_flow() const { return state_.scanning && !state_.keyboard_off; }
  bool has_output() const { return !state_.replies.empty() || (keys_flow() && !state_.keys.empty()); }
  void reply(uint8_t byte);
  bool controller_command(uint8_t command);
  bool controller_data(uint8_t command, uint8_t value);
  void keyboard_data(uint8_t value);
  bool write_output_port(uint8_t value);

  State state_;
  bool edge_ = false;
  bool reset_ = false;
};

}  // namespace slalom::vm
