#include "detect/core/titles.h"

#include <cctype>

#include "base/text/characters.h"

namespace slalom {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Returns the end of the run of characters, starting at `at`, for which `belongs` holds.
template <typename Belongs>
size_t run_end(std::string_view text, size_t at, Belongs belongs) {
  while (at < text.size() && belongs(text[at])) ++at;
  return at;
}

size_t closing_parenthesis(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string generic_name(std::string_view name) {
  std::string result;
  for (size_t at = 0; at < name.size();) {
    const bool word_starts = at == 0 || !is_word(name[at - 1]);
    if (word_starts && name.substr(at).starts_with("heap(")) {
      const size_t close = closing_parenthesis(name, at + 4);
      if (close != std::string_view::npos) {
        result += "heap";
        at = close + 1;
        continue;
      }
    }
    if (name[at] == '[') {
      const size_t end = run_end(name, at + 1, is_digit);
      if (end < name.size() && name[end] == ']') {
        result += "[]";
        at = end + 1;
        continue;
      }
    }
    if (name[at] == '#') {
      const size_t end = run_end(name, at + 1, is_digit);
      if (end > at + 1) {
        at = end;
        continue;
      }
    }
    if (name[at] == '@') {
      at = run_end(name, at + 1, [](char c) { return is_word(c) || c == '.' || c == '#'; });
      continue;
    }
    result += name[at++];
  }
  return result;
}

std::string generic_text(std::string_view text) {
  const std::string names = generic_name(text);
  std::string result;
  for (size_t at = 0; at < names.size();) {
    const size_t end = run_end(names, at, is_word);
    if (end == at) {
      result += names[at++];
      continue;
    }
    const std::string word = names.substr(at, end - at);
    result += is_digit(word[0]) ? "N" : word;
    at = end;
  }
  return result;
}

}  // namespace slalom
