// Debian's control-file format: stanzas of "Field: value" lines, separated by empty lines. Continuation lines
// start with a blank. Package lists, deb822 sources and the note of a fetched kernel use it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slalom::vm {

class Stanza {
 public:
  // Returns the first field with this name, ignoring case; empty if there is none. Its lines are joined by
  // '\n', without comments.
  std::string field(std::string_view name) const;
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void extend_last(std::string_view line);
  bool empty() const { return fields_.empty(); }
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// Lenient, because these files come from many sources: ignores lines that are no fields.
std::vector<Stanza> parse_control(std::string_view text);

// Splits at white space.
std::vector<std::string> split_words(std::string_view text);

}  // namespace slalom::vm
