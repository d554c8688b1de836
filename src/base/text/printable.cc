#include "base/text/printable.h"

#include <algorithm>
#include <cstdint>

namespace slalom {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

size_t encoded_length(unsigned char lead) {
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

// Returns whether the character ends a line or changes the order of text.
bool rearranges(uint32_t point) {
  return point == 0x61c || (point >= 0x200e && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

template <typename Space>
std::string replaced(std::string_view text, Space space) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      result += space(c);
      ++at;
    } else if (const size_t length = printable_length(text.substr(at)); length != 0) {
      result += text.substr(at, length);
      at += length;
    } else {
      result += kReplacement;
      ++at;
    }
  }
  return result;
}

}  // namespace

size_t printable_length(std::string_view text) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  const size_t length = encoded_length(static_cast<unsigned char>(lead));
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  uint32_t value = lead & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (!is_continuation(text[i])) return 0;
    value = value << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  const bool control = value < 0xa0;
  return overlong || surrogate || control || rearranges(value) || value > 0x10ffff ? 0 : length;
}

size_t unfinished_length(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const char c = text[text.size() - back];
    if (is_continuation(c)) continue;
    return encoded_length(static_cast<unsigned char>(c)) > back ? back : 0;
  }
  return 0;
}

std::string printable(std::string_view text) {
  return replaced(text, [](char) { return ' '; });
}

std::string printable_lines(std::string_view text) {
  return replaced(text, [](char c) { return c == '\r' ? ' ' : c; });
}

}  // namespace slalom
