// Pieces of text for all terminal output: numbers for people, aligned tables, wrapped paragraphs, colours.
//
// Text is UTF-8. Its width is counted in code points, one column each; terminal escapes have no width. Text
// from a target must pass printable() (base/text/printable.h) before layout. fit() expects text without
// escapes: lay out first, paint last. Not for findings: nothing here depends on them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/printable.h"
#include "trace/names.h"

namespace slalom {

std::string human_number(uint64_t number);                      // "1,234,567"
std::string human_duration(std::chrono::nanoseconds duration);  // "12.3 ms", "3 min 20 s"
std::string ordinal(uint64_t number);                           // "1st", "12th"
std::string plural(uint64_t count, std::string_view singular,   // "1 switch", "1,204 switches"
                   std::string_view several = "");              // default: singular + "s"

size_t display_width(std::string_view text);
// Returns the text, cut to `width` columns; `ellipsis` ends a text that was cut.
std::string fit(std::string_view text, size_t width, std::string_view ellipsis = "…");
std::string pad(std::string_view text, size_t width);       // adds spaces after it
std::string pad_left(std::string_view text, size_t width);  // adds spaces before it
// Returns a place with its source line if that is known: "card_write+0x68 (torn_read.c:45)". Printable.
std::string place_and_line(const Names& names, Place pc);
std::string agent_text(const Names& names, AgentId agent);  // printable; "nobody" for no agent
// Returns lines of at most `width` columns, each with a newline at its end. A longer word gets a line of its
// own. Keeps newlines of `text`.
std::string wrap(std::string_view text, size_t width, size_t first_indent = 0, size_t next_indent = 0);

enum class Ink : uint8_t { Bold, Dim, Red, Green, Yellow, Blue, Magenta, Cyan };

struct Style {
  bool on = false;
  std::string paint(Ink ink, std::string_view text) const;
};

// The characters that are not letters: boxes and arrows, or their ASCII forms.
struct Glyphs {
  std::string_view vertical, horizontal, crossing, dash, right, left, ellipsis, times;
  std::string_view evidence, point, failure, race, suspicion;
};
const Glyphs& glyphs(bool ascii);

// Columns as wide as their widest cell, two spaces apart. Cells may be painted. Rows may be shorter than the
// header.
class Table {
 public:
  enum class Align : uint8_t { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);
  std::string text(const Style& style = {}, size_t indent = 0) const;  // omits the titles if all are empty

 private:
  std::string line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                   size_t indent) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace slalom
