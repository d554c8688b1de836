#include "kernel_store/control_file.h"

#include <algorithm>
#include <cctype>

namespace slalom::vm {
namespace {

bool blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::string Stanza::field(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (same_name(key, name)) return value;
  return {};
}

void Stanza::extend_last(std::string_view line) {
  if (fields_.empty()) return;
  std::string& value = fields_.back().second;
  if (!value.empty()) value += '\n';
  value += line;
}

std::string Stanza::text() const {
  std::string result;
  for (const auto& [name, value] : fields_) {
    result += name + ":";
    if (!value.starts_with('\n')) result += ' ';
    for (const char c : value) {
      result += c;
      if (c == '\n') result += ' ';
    }
    result += '\n';
  }
  return result;
}

std::vector<Stanza> parse_control(std::string_view text) {
  std::vector<Stanza> stanzas;
  Stanza current;
  const auto finish = [&] {
    if (!current.empty()) stanzas.push_back(std::move(current));
    current = Stanza();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (trimmed(line).empty()) {
      finish();
    } else if (line.front() == '#') {
      continue;
    } else if (blank(line.front())) {
      current.extend_last(trimmed(line));
    } else if (const size_t colon = line.find(':'); colon != std::string_view::npos && colon > 0) {
      current.add(std::string(trimmed(line.substr(0, colon))), std::string(trimmed(line.substr(colon + 1))));
    }
  }
  finish();
  return stanzas;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (!blank(c)) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace slalom::vm
