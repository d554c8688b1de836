// Debian's control-file form: stanzas of "Field: value" lines, set apart by empty lines, with continuation
// lines that start with a blank. Package lists, deb822 sources and the note beside a fetched kernel have it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace slalom::vm {

class Stanza {
 public:
  // The first field of that name, in any case; empty if there is none. Lines are joined by '\n', comments
  // left out.
  std::string field(std::string_view name) const;
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void extend_last(std::string_view line);
  bool empty() const { return fields_.empty(); }
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// Lenient, as these files come from many hands: a line that is no field is passed over.
std::vector<Stanza> parse_control(std::string_view text);

// What is between blanks, commas included.
std::vector<std::string> split_words(std::string_view text);

}  // namespace slalom::vm
