// Classes of characters in the C locale, whatever locale the process has set. For readers of text; ASCII
// only.
#pragma once

namespace slalom {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Of identifiers, as in C.
constexpr bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_name_character(char c) {
  return is_name_start(c) || is_digit(c);
}

}  // namespace slalom
