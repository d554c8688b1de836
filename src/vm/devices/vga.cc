#include "vm/devices/vga.h"

#include <string_view>

namespace slalom::vm {

namespace {

constexpr Physical kTextMemory = 0xb8000;
constexpr unsigned kTextCells = 0x4000;  // 32 KiB; a character and a colour for each cell
constexpr uint8_t kCursorOff = 0x20;     // in the cursor start register

// Code page 437: the characters beyond ASCII, and the symbols below it.
constexpr std::string_view kLow[32] = {" ", "☺", "☻", "♥", "♦", "♣", "♠", "•", "◘", "○", "◙",
                                       "♂", "♀", "♪", "♫", "☼", "►", "◄", "↕", "‼", "¶", "§",
                                       "▬", "↨", "↑", "↓", "→", "←", "∟", "↔", "▲", "▼"};
constexpr std::string_view kHigh[129] = {
    "⌂", "Ç", "ü", "é", "â", "ä", "à", "å", "ç", "ê", "ë", "è", "ï", "î", "ì", "Ä", "Å", "É", "æ",
    "Æ", "ô", "ö", "ò", "û", "ù", "ÿ", "Ö", "Ü", "¢", "£", "¥", "₧", "ƒ", "á", "í", "ó", "ú", "ñ",
    "Ñ", "ª", "º", "¿", "⌐", "¬", "½", "¼", "¡", "«", "»", "░", "▒", "▓", "│", "┤", "╡", "╢", "╖",
    "╕", "╣", "║", "╗", "╝", "╜", "╛", "┐", "└", "┴", "┬", "├", "─", "┼", "╞", "╟", "╚", "╔", "╩",
    "╦", "╠", "═", "╬", "╧", "╨", "╤", "╥", "╙", "╘", "╒", "╓", "╫", "╪", "┘", "┌", "█", "▄", "▌",
    "▐", "▀", "α", "ß", "Γ", "π", "Σ", "σ", "µ", "τ", "Φ", "Θ", "Ω", "δ", "∞", "φ", "ε", "∩", "≡",
    "±", "≥", "≤", "⌠", "⌡", "÷", "≈", "°", "∙", "·", "√", "ⁿ", "²", "■", " "};

void append_character(std::string& text, uint8_t code) {
  if (code < 32)
    text += kLow[code];
  else if (code < 127)
    text += static_cast<char>(code);
  else
    text += kHigh[code - 127];
}

}  // namespace

Vga::Vga() {
  state_.crtc[0x0a] = 13;  // a cursor of two scan lines
  state_.crtc[0x0b] = 14;
  state_.graphics[6] = 0x0e;  // text, at b8000
}

bool Vga::read(Time now, uint16_t port, uint8_t& value) {
  switch (port) {
    case 0x3c0:
      value = state_.attribute_index;
      return true;
    case 0x3c1:
      value = state_.attributes[state_.attribute_index & 31];
      return true;
    case 0x3c2:
      value = 0;
      return true;
    case 0x3c4:
      value = state_.sequencer_index;
      return true;
    case 0x3c5:
      value = state_.sequencer[state_.sequencer_index & 7];
      return true;
    case 0x3c6:
      value = state_.dac_mask;
      return true;
    case 0x3c8:
      value = static_cast<uint8_t>(state_.dac_write / 3);
      return true;
    case 0x3c9:
      value = state_.dac[state_.dac_read];
      state_.dac_read = static_cast<uint16_t>((state_.dac_read + 1) % state_.dac.size());
      return true;
    case 0x3cc:
      value = state_.miscellaneous;
      return true;
    case 0x3ce:
      value = state_.graphics_index;
      return true;
    case 0x3cf:
      value = state_.graphics[state_.graphics_index & 15];
      return true;
    case 0x3d4:
      value = state_.crtc_index;
      return true;
    case 0x3d5:
      value = state_.crtc[state_.crtc_index & 31];
      return true;
    case 0x3da: {
      state_.attribute_data = false;
      // 70 pictures per second. Each ends with a vertical retrace.
      constexpr Time picture = kSecond / 70;
      value = now % picture > picture - picture / 16 ? 0x09 : 0x00;
      return true;
    }
    default:
      return false;
  }
}

bool Vga::write(uint16_t port, uint8_t value) {
  switch (port) {
    case 0x3c0:
      if (state_.attribute_data)
        state_.attributes[state_.attribute_index & 31] = value;
      else
        state_.attribute_index = value & 0x3f;
      state_.attribute_data = !state_.attribute_data;
      return true;
    case 0x3c2:
      state_.miscellaneous = value;
      return true;
    case 0x3c4:
      state_.sequencer_index = value;
      return true;
    case 0x3c5:
      state_.sequencer[state_.sequencer_index & 7] = value;
      return true;
    case 0x3c6:
      state_.dac_mask = value;
      return true;
    case 0x3c7:
      state_.dac_read = static_cast<uint16_t>(value * 3);
      return true;
    case 0x3c8:
      state_.dac_write = static_cast<uint16_t>(value * 3);
      return true;
    case 0x3c9:
      state_.dac[state_.dac_write] = value & 0x3f;
      state_.dac_write = static_cast<uint16_t>((state_.dac_write + 1) % state_.dac.size());
      return true;
    case 0x3ce:
      state_.graphics_index = value;
      return true;
    case 0x3cf:
      state_.graphics[state_.graphics_index & 15] = value;
      return (state_.graphics_index & 15) != 6 || (value & 1) == 0;  // false for a graphics mode
    case 0x3d4:
      state_.crtc_index = value;
      return true;
    case 0x3d5:
      state_.crtc[state_.crtc_index & 31] = value;
      return true;
    case 0x3da:
      return true;  // feature control
    default:
      return false;
  }
}

int Vga::cursor() const {
  if (state_.crtc[0x0a] & kCursorOff) return -1;
  const unsigned cell = unsigned{state_.crtc[0x0e]} << 8 | state_.crtc[0x0f];
  const unsigned offset = (cell - start_cell()) % kTextCells;
  return offset < kColumns * kRows ? static_cast<int>(offset) : -1;
}

std::string Vga::text_screen(const Ram& ram) const {
  std::string screen;
  for (unsigned row = 0; row < kRows; ++row) {
    std::string line;
    size_t length = 0;  // position after the last non-blank character
    for (unsigned column = 0; column < kColumns; ++column) {
      const unsigned cell = (start_cell() + row * kColumns + column) % kTextCells;
      uint8_t code = ' ';
      ram.read(kTextMemory + cell * 2, {&code, 1});
      append_character(line, code);
      if (code != ' ' && code != 0 && code != 0xff) length = line.size();
    }
    screen.append(line, 0, length).push_back('\n');
  }
  return screen;
}

}  // namespace slalom::vm
