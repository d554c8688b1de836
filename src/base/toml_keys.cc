#include "base/toml_keys.h"

#include <algorithm>
#include <cstddef>

namespace slalom {
namespace {

// The length of the string that `text` starts with, in quotes of any kind; 0: it starts with none.
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
      return at;  // it has no end: the parser will say so
  }
  return text.size();
}

}  // namespace

int line_of_overlong_toml_key(std::string_view text) {
  int line = 1, dots = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const char c = rest.front();
    if (const size_t length = string_length(rest); length != 0) {
      line += static_cast<int>(std::ranges::count(rest.substr(0, length), '\n'));
      at += length;
      continue;
    }
    if (c == '#') {
      at += std::min(rest.find('\n'), rest.size());
      continue;
    }
    if (c == '.' && ++dots > kMostTomlDots) return line;
    // Everything else that may be in a key goes on with it.
    if (c == '=' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']' || c == '\n') dots = 0;
    line += c == '\n';
    ++at;
  }
  return 0;
}

}  // namespace slalom
