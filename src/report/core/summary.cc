#include "report/core/summary.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace slalom {
namespace {

constexpr std::string_view kReset = "\x1b[0m";

// Returns the length of the escape sequence with which `text` starts; 0 if it starts with none.
size_t escape_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  size_t at = 2;
  while (at < text.size() && (text[at] == ';' || (text[at] >= '0' && text[at] <= '9'))) ++at;
  return at < text.size() ? at + 1 : 0;
}

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

}  // namespace

std::string human_number(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string human_duration(std::chrono::nanoseconds duration) {
  const auto count = duration.count();
  if (count < 0) return fmt::format("-{}", human_duration(-duration));
  // 999.95 of a unit would print as 1000.0, so the next unit starts just below.
  const auto value = static_cast<double>(count);
  if (count < 1'000) return fmt::format("{} ns", count);
  if (count < 999'950) return fmt::format("{:.1f} µs", value / 1e3);
  if (count < 999'950'000) return fmt::format("{:.1f} ms", value / 1e6);
  if (count < 59'950'000'000) return fmt::format("{:.1f} s", value / 1e9);
  const auto seconds = (count + 500'000'000) / 1'000'000'000;
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  const auto minutes = (seconds + 30) / 60;
  return fmt::format("{} h {:02} min", human_number(static_cast<uint64_t>(minutes / 60)), minutes % 60);
}

std::string ordinal(uint64_t number) {
  const bool teen = number % 100 >= 11 && number % 100 <= 13;
  const std::string_view ending = teen               ? "th"
                                  : number % 10 == 1 ? "st"
                                  : number % 10 == 2 ? "nd"
                                  : number % 10 == 3 ? "rd"
                                                     : "th";
  return human_number(number) + std::string(ending);
}

std::string plural(uint64_t count, std::string_view singular, std::string_view several) {
  if (count == 1) return fmt::format("1 {}", singular);
  if (!several.empty()) return fmt::format("{} {}", human_number(count), several);
  return fmt::format("{} {}s", human_number(count), singular);
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (size_t at = 0; at < text.size();) {
    if (const size_t escape = escape_length(text.substr(at)); escape != 0) {
      at += escape;
      continue;
    }
    if (!continues(text[at])) ++width;
    ++at;
  }
  return width;
}

std::string fit(std::string_view text, size_t width, std::string_view ellipsis) {
  if (display_width(text) <= width) return std::string(text);
  const size_t dots = display_width(ellipsis);
  size_t left = width > dots ? width - dots : 0;
  size_t at = 0;
  while (at < text.size()) {
    if (!continues(text[at]) && left-- == 0) break;
    ++at;
  }
  while (at > 0 && text[at - 1] == ' ') --at;
  const std::string cut = std::string(text.substr(0, at)) + std::string(ellipsis);
  return display_width(cut) <= width ? cut : std::string(width, '.');
}

std::string pad(std::string_view text, size_t width) {
  const size_t used = display_width(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string pad_left(std::string_view text, size_t width) {
  const size_t used = display_width(text);
  return std::string(used < width ? width - used : 0, ' ') + std::string(text);
}

std::string place_and_line(const Names& names, Place pc) {
  const std::string line = names.line(pc);
  return printable(line.empty() ? names.place(pc) : fmt::format("{} ({})", names.place(pc), line));
}

std::string agent_text(const Names& names, AgentId agent) {
  return agent ? printable(names.agent(agent)) : "nobody";
}

std::string wrap(std::string_view text, size_t width, size_t first_indent, size_t next_indent) {
  std::string result;
  size_t indent = first_indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view paragraph = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string line;
    size_t used = 0;
    const auto flush = [&] {
      result += std::string(line.empty() ? 0 : indent, ' ') + line + '\n';
      indent = next_indent;
      line.clear();
      used = 0;
    };
    while (!paragraph.empty()) {
      const size_t space = std::min(paragraph.find(' '), paragraph.size());
      const std::string_view word = paragraph.substr(0, space);
      paragraph.remove_prefix(std::min(space + 1, paragraph.size()));
      if (word.empty()) continue;
      const size_t length = display_width(word);
      if (used != 0 && indent + used + 1 + length > width) flush();
      if (used != 0) {
        line += ' ';
        ++used;
      }
      line += word;
      used += length;
    }
    flush();
  }
  return result;
}

std::string Style::paint(Ink ink, std::string_view text) const {
  if (!on || text.empty()) return std::string(text);
  static constexpr std::array<int, 8> kCodes = {1, 2, 31, 32, 33, 34, 35, 36};
  return fmt::format("\x1b[{}m{}{}", kCodes[static_cast<size_t>(ink)], text, kReset);
}

const Glyphs& glyphs(bool ascii) {
  static constexpr Glyphs kDrawn = {"│", "─", "┼", "╌", "→", "←", "…", "×", "▶", "•", "✗", "▲", "?"};
  static constexpr Glyphs kAscii = {"|", "-", "+", "-", "->", "<-", "...", "x", ">", "*", "x", "!", "?"};
  return ascii ? kAscii : kDrawn;
}

void Table::add(std::vector<std::string> cells) {
  CHECK(cells.size() <= columns_.size(), "{} cells in a table of {} columns", cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                        size_t indent) const {
  std::string text(indent, ' ');
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) text += "  ";
    text += columns_[i].align == Align::Right ? pad_left(cells[i], widths[i]) : pad(cells[i], widths[i]);
  }
  while (text.ends_with(' ')) text.pop_back();
  return text + '\n';
}

std::string Table::text(const Style& style, size_t indent) const {
  std::vector<size_t> widths;
  std::vector<std::string> titles;
  bool titled = false;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_)
      if (i < row.size()) width = std::max(width, display_width(row[i]));
    widths.push_back(width);
    titles.push_back(style.paint(Ink::Bold, columns_[i].title));
    titled |= !columns_[i].title.empty();
  }
  std::string result;
  if (titled) result += line(titles, widths, indent);
  for (const auto& row : rows_) result += line(row, widths, indent);
  return result;
}

}  // namespace slalom
