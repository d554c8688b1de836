// Page: the text of a report while it is written: headings and wrapped paragraphs, painted for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/core/summary.h"

namespace slalom {

class Page {
 public:
  static constexpr size_t kIndent = 2;

  // Values of `width` below 40 count as 40.
  Page(size_t width, bool colour, bool ascii);

  void heading(std::string_view text);
  // Paragraphs are no wider than kProse.
  void paragraph(const std::string& text, size_t indent = kIndent, size_t next = kIndent);
  // Adds a sentence of parts. Breaks lines between parts rather than inside them.
  void sentence(const std::vector<std::string>& parts);
  void add(std::string_view text) { text_ += text; }  // as it is

  size_t width() const { return width_; }
  size_t prose_width() const;
  const Style& style() const { return style_; }
  const Glyphs& glyphs() const { return glyphs_; }
  const std::string& text() const { return text_; }

 private:
  static constexpr size_t kProse = 100;  // wider lines of text are hard to read

  size_t width_;
  Style style_;
  const Glyphs& glyphs_;
  std::string text_;
};

}  // namespace slalom
