// What kind of character this is, in the C locale whatever the process has set: for readers of text. Not for
// anything but ASCII.
#pragma once

namespace slalom {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace slalom
