// Vga: the registers of a VGA card in text mode (ports 3c0 to 3df).
//
// Registers can be written and read back. Only the start address and the cursor have an effect. The
// characters are in plain RAM at b8000; text_screen() renders them. Switching to a graphics mode is reported
// as not implemented.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "vm/devices/virtual_time.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

class Vga {
 public:
  static constexpr unsigned kColumns = 80;
  static constexpr unsigned kRows = 25;

  struct State {
    uint8_t crtc_index = 0, sequencer_index = 0, graphics_index = 0, attribute_index = 0;
    bool attribute_data = false;  // the next write to port 3c0 is data
    uint8_t miscellaneous = 0x67;
    uint8_t dac_mask = 0xff;
    uint16_t dac_read = 0, dac_write = 0;  // three times the colour, plus the component
    std::array<uint8_t, 32> crtc{};
    std::array<uint8_t, 8> sequencer{};
    std::array<uint8_t, 16> graphics{};
    std::array<uint8_t, 32> attributes{};
    std::array<uint8_t, 768> dac{};
    bool operator==(const State&) const = default;
    template <class Self, class Visitor>
    static void fields(Self& s, Visitor& v) {
      v(s.crtc_index, s.sequencer_index, s.graphics_index, s.attribute_index, s.attribute_data,
        s.miscellaneous, s.dac_mask, s.dac_read, s.dac_write, s.crtc, s.sequencer, s.graphics, s.attributes,
        s.dac);
    }
  };

  Vga();
  const State& state() const { return state_; }
  static bool valid(const State& state) { return state.dac_read < 768 && state.dac_write < 768; }
  void set_state(const State& state) { state_ = state; }

  static bool owns(uint16_t port) { return port >= 0x3c0 && port <= 0x3df; }
  bool read(Time now, uint16_t port, uint8_t& value);
  bool write(uint16_t port, uint8_t value);

  // The cursor's cell, row * 80 + column; -1 if the cursor is off or not on the screen.
  int cursor() const;
  // The screen's contents: 25 lines of UTF-8 without trailing blanks.
  std::string text_screen(const Ram& ram) const;

 private:
  unsigned start_cell() const { return unsigned{state_.crtc[0x0c]} << 8 | state_.crtc[0x0d]; }

  State state_;
};

}  // namespace slalom::vm
