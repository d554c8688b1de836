#include "base/toml_check.h"

#include <algorithm>
#include <cstddef>

namespace slalom {
namespace {

// Returns the length of the string with which `text` starts, in quotes of any kind; 0 if it starts with none.
size_t string_length(std::string_view text) {
  const char quote = text.front();
  if (quote != '"' && quote != '\'') return 0;
  const bool escapes = quote == '"';
  const bool many_lines = text.size() >= 3 && text[1] == quote && text[2] == quote;
  const std::string_view end = many_lines ? text.substr(0, 3) : text.substr(0, 1);
  for (size_t at = end.size(); at < text.size(); ++at) {
    if (escapes && text[at] == '\\')
      ++at;
    else if (text.substr(at).starts_with(end))
      return at + end.size();
    else if (!many_lines && text[at] == '\n')
      return at;  // the string has no end; the parser will report it
  }
  return text.size();
}

bool is_foreign(char c) {
  return static_cast<unsigned char>(c) >= 0x80;
}

// Returns whether a line of this string ends in a backslash, and the next line begins with a letter that is
// not ASCII. The parser skips white space there.
bool has_foreign_continuation(std::string_view string) {
  constexpr std::string_view kSpace = " \t\r\n";
  if (!string.starts_with("\"\"\"")) return false;
  for (size_t at = 0; (at = string.find('\\', at)) != std::string_view::npos; ++at) {
    const size_t next = string.find_first_not_of(kSpace, at + 1);
    if (next == std::string_view::npos) return false;
    if (next > at + 1 && is_foreign(string[next])) return true;
    at += string[at + 1] == '\\';
  }
  return false;
}

}  // namespace

Result<void> check_toml(std::string_view text, std::string_view origin) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  int line = 1, dots = 0;
  for (size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const char c = rest.front();
    const size_t length = string_length(rest);
    const std::string_view string = rest.substr(0, length);
    line += static_cast<int>(std::ranges::count(string, '\n'));
    if (is_foreign(c) || has_foreign_continuation(string))
      return error("{}:{}: a letter that is not ASCII may only be in a comment or in a text in quotes",
                   origin, line);
    at += length;
    if (length != 0) continue;
    if (c == '#') {
      at += std::min(rest.find('\n'), rest.size());
      continue;
    }
    if (c == '.' && ++dots > kMostTomlDots)
      return error("{}:{}: a key may have {} dots, and this one has more", origin, line, kMostTomlDots);
    // All other characters that may occur in a key continue it.
    if (c == '=' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']' || c == '\n') dots = 0;
    line += c == '\n';
    ++at;
  }
  return {};
}

}  // namespace slalom
