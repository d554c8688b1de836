#include "report/core/page.h"

#include <algorithm>

namespace slalom {

Page::Page(size_t width, bool colour, bool ascii)
    : width_(std::max<size_t>(width, 40)), style_{colour}, glyphs_(slalom::glyphs(ascii)) {}

size_t Page::prose_width() const {
  return std::min(width_, kProse);
}

void Page::heading(std::string_view text) {
  text_ += '\n' + style_.paint(Ink::Bold, text) + '\n';
}

void Page::paragraph(const std::string& text, size_t indent, size_t next) {
  text_ += wrap(text, prose_width(), indent, next);
}

void Page::sentence(const std::vector<std::string>& parts) {
  std::string line;
  size_t indent = kIndent;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? ";" : ".");
    if (!line.empty() && indent + display_width(line) + 1 + display_width(part) > prose_width()) {
      paragraph(line, indent, kIndent + 2);
      line.clear();
      indent = kIndent + 2;
    }
    line += (line.empty() ? "" : " ") + part;
  }
  paragraph(line, indent, kIndent + 2);
}

}  // namespace slalom
