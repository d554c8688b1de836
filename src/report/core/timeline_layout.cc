#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "report/core/timeline.h"

namespace slalom {
namespace {

constexpr size_t kMargin = 2;
// Columns that are narrower than this, and too narrow for their contents, are stacked.
constexpr size_t kReadable = 22;
constexpr size_t kGap = 3;         // between a text and its note
constexpr size_t kShortText = 16;  // minimum width of a long text that shares its line with its note

std::string repeat(std::string_view glyph, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += glyph;
  return text;
}

// A text and its note, cut and wrapped to fit.
struct CellLine {
  std::string text;
  size_t gap = 0;
  std::string note;
  size_t width() const { return display_width(text) + gap + display_width(note); }
};

class Layout {
 public:
  Layout(const Timeline& timeline, const Names& names, const LayoutOptions& options)
      : timeline_(timeline), options_(options), style_(options.style), glyphs_(glyphs(options.ascii)) {
    for (AgentId agent : timeline.agents) names_.push_back(printable(names.agent(agent)));
    uint64_t most = 0;
    for (const TimelineRow& row : timeline.rows)
      if (row.step) most = std::max(most, row.step->raw);
    gutter_ = std::max<size_t>(4, std::to_string(most).size());
  }

  std::string text() {
    if (timeline_.agents.empty()) return wholes();
    measure();
    return columns_fit() ? columns() : stacked();
  }

 private:
  struct Column {
    size_t texts = 0;  // the widest text of a row that has a note
    size_t need = 0;   // to show every row in one line
    size_t width = 0;  // including the line and the mark
    size_t start = 0;
  };

  size_t index(AgentId agent) const {
    const auto& agents = timeline_.agents;
    return static_cast<size_t>(std::find(agents.begin(), agents.end(), agent) - agents.begin());
  }

  bool in_column(const TimelineRow& row) const {
    return row.what == TimelineRow::What::Cell || row.what == TimelineRow::What::Pause;
  }

  void measure() {
    columns_.resize(names_.size());
    for (size_t i = 0; i < names_.size(); ++i) columns_[i].need = display_width(names_[i]);
    for (const TimelineRow& row : timeline_.rows)
      if (in_column(row) && !row.note.empty()) {
        Column& column = columns_[index(row.agent)];
        column.texts = std::max(column.texts, display_width(row.text));
      }
    for (const TimelineRow& row : timeline_.rows) {
      if (!in_column(row)) continue;
      Column& column = columns_[index(row.agent)];
      const size_t need =
          row.note.empty() ? display_width(row.text) : column.texts + kGap + display_width(row.note);
      column.need = std::max(column.need, need);
    }
    for (Column& column : columns_) column.need += kFrame;
  }

  // Gives every column the width that it needs, or else a fair share. Returns false if a column would be
  // unreadable.
  bool columns_fit() {
    const size_t before = kMargin + gutter_ + 1;
    size_t left = options_.width > before ? options_.width - before : 0;
    std::vector<size_t> order(columns_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return columns_[a].need < columns_[b].need; });
    for (size_t k = 0; k < order.size(); ++k) {
      Column& column = columns_[order[k]];
      column.width = std::min(column.need, left / (order.size() - k));
      left -= column.width;
      if (column.width < std::min(column.need, kReadable)) return false;
    }
    size_t start = before;
    for (Column& column : columns_) {
      column.start = start;
      start += column.width;
    }
    return true;
  }

  // `texts`: the column of notes in rows that have room for it.
  std::vector<CellLine> fit_cell(const TimelineRow& row, size_t width, size_t texts) const {
    const size_t text = display_width(row.text);
    const size_t note = display_width(row.note);
    if (row.wraps && text > width) return wrapped_cell(row, width);
    if (note == 0) return {{fit(row.text, width, glyphs_.ellipsis), 0, ""}};
    if (text + kGap + note <= width) {
      const size_t at = std::max(text + kGap, std::min(texts + kGap, width - note));
      return {{row.text, at - text, row.note}};
    }
    if (text > width && note + 2 + kShortText <= width) {
      const std::string cut = fit(row.text, width - note - 2, glyphs_.ellipsis);
      return {{cut, width - note - display_width(cut), row.note}};
    }
    std::vector<CellLine> lines = {{fit(row.text, width, glyphs_.ellipsis), 0, ""}};
    add_lines(lines, row.note, width);
    return lines;
  }

  // Cuts the end of a long function name, and keeps the offset.
  std::string shorten(const std::string& line, size_t width) const {
    const size_t offset = line.rfind("+0x");
    const size_t tail = offset == std::string::npos ? 0 : line.size() - offset;
    if (display_width(line) <= width || tail == 0 || tail + kShortText > width)
      return fit(line, width, glyphs_.ellipsis);
    return fit(line.substr(0, offset), width - tail, glyphs_.ellipsis) + line.substr(offset);
  }

  // Cuts a long agent name, and keeps its number, which distinguishes it from others: "a_long_nam…#2".
  std::string shorten_name(const std::string& name, size_t width) const {
    const size_t number = name.find_last_of("#@");
    const size_t tail = number == std::string::npos ? 0 : name.size() - number;
    if (display_width(name) <= width || tail == 0 || tail + 2 > width)
      return fit(name, width, glyphs_.ellipsis);
    return fit(name.substr(0, number), width - tail, glyphs_.ellipsis) + name.substr(number);
  }

  std::vector<CellLine> wrapped_cell(const TimelineRow& row, size_t width) const {
    std::vector<CellLine> lines;
    const std::string wrapped = wrap(row.text, width, 0, 2);
    for (size_t at = 0; at < wrapped.size();) {
      const size_t end = wrapped.find('\n', at);
      lines.push_back({shorten(wrapped.substr(at, end - at), width), 0, ""});
      at = end + 1;
    }
    if (!row.note.empty()) add_lines(lines, row.note, width);
    return lines;
  }

  void add_lines(std::vector<CellLine>& lines, const std::string& note, size_t width) const {
    const std::string wrapped = wrap(note, width - 2);
    for (size_t at = 0; at < wrapped.size();) {
      const size_t end = wrapped.find('\n', at);
      lines.push_back({"", 2, shorten(wrapped.substr(at, end - at), width - 2)});
      at = end + 1;
    }
  }

  std::string paint(const TimelineRow& row, const CellLine& line) const {
    std::string text = line.text;
    std::string note = line.note;
    if (row.what == TimelineRow::What::Pause) {
      text = style_.paint(Ink::Dim, text);
      note = style_.paint(Ink::Dim, note);
    } else if (row.failed) {
      text = style_.paint(Ink::Bold, style_.paint(Ink::Red, text));
      note = style_.paint(Ink::Bold, style_.paint(Ink::Red, note));
    } else {
      if (row.mark == TimelineRow::Mark::Evidence) text = style_.paint(Ink::Bold, text);
      note = style_.paint(Ink::Cyan, note);
    }
    return text + std::string(line.gap, ' ') + note;
  }

  std::string mark(const TimelineRow& row) const {
    if (row.mark == TimelineRow::Mark::Evidence) return style_.paint(Ink::Red, glyphs_.evidence);
    if (row.mark == TimelineRow::Mark::Point) return style_.paint(Ink::Yellow, glyphs_.point);
    return " ";
  }

  std::string gutter(const TimelineRow& row, bool first) const {
    const std::string step = row.step && first ? std::to_string(row.step->raw) : "";
    return std::string(kMargin, ' ') + style_.paint(Ink::Dim, pad_left(step, gutter_)) + ' ';
  }

  std::string bar() const { return style_.paint(Ink::Dim, glyphs_.vertical); }

  void emit(std::string line) {
    while (line.ends_with(' ')) line.pop_back();
    result_ += line + '\n';
  }

  // Returns a row over all columns.
  std::string whole(const TimelineRow& row) const {
    std::string text;
    const size_t indent = kMargin + gutter_ + 3;
    const size_t next = row.what == TimelineRow::What::Ending ? indent + 2 : indent;
    const std::string said =
        row.what == TimelineRow::What::Ending
            ? fmt::format("{} {}", row.failed ? glyphs_.failure : glyphs_.point, row.text)
            : row.text;
    const std::string wrapped = wrap(said, options_.width, indent, next);
    for (size_t at = 0; at < wrapped.size();) {
      const size_t end = wrapped.find('\n', at);
      const std::string line = wrapped.substr(at, end - at);
      text +=
          row.failed ? style_.paint(Ink::Bold, style_.paint(Ink::Red, line)) : style_.paint(Ink::Dim, line);
      text += '\n';
      at = end + 1;
    }
    return text;
  }

  std::string wholes() {
    for (const TimelineRow& row : timeline_.rows) result_ += whole(row);
    return std::move(result_);
  }

  std::string columns() {
    std::string header = std::string(kMargin, ' ') + style_.paint(Ink::Dim, pad_left("step", gutter_)) + ' ';
    std::string rule = std::string(kMargin, ' ') + repeat(glyphs_.horizontal, gutter_ + 1);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const size_t width = columns_[i].width;
      const std::string shown = shorten_name(names_[i], width - kFrame);
      header += bar() + "  " + style_.paint(Ink::Bold, style_.paint(ink(i), shown));
      if (i + 1 < columns_.size()) header += std::string(width - 3 - display_width(shown), ' ');
      rule += std::string(glyphs_.crossing) + repeat(glyphs_.horizontal, width - 1);
    }
    emit(header);
    emit(style_.paint(Ink::Dim, rule));
    for (const TimelineRow& row : timeline_.rows) {
      if (row.what == TimelineRow::What::Switch) {
        emit(switch_line(row));
      } else if (!in_column(row)) {
        result_ += whole(row);
      } else {
        cell(row);
      }
    }
    return std::move(result_);
  }

  void cell(const TimelineRow& row) {
    const size_t own = index(row.agent);
    const Column& column = columns_[own];
    const auto lines = fit_cell(row, column.width - kFrame, column.texts);
    for (size_t n = 0; n < lines.size(); ++n) {
      std::string text = gutter(row, n == 0);
      for (size_t i = 0; i < columns_.size(); ++i) {
        text += bar();
        if (i != own) {
          text += std::string(columns_[i].width - 1, ' ');
          continue;
        }
        text += (n == 0 ? mark(row) : " ") + ' ' + paint(row, lines[n]);
        if (i + 1 < columns_.size()) text += std::string(column.width - 3 - lines[n].width(), ' ');
      }
      emit(std::move(text));
    }
  }

  // Returns an arrow from the column of the agent that stops to that of the agent that goes on.
  std::string switch_line(const TimelineRow& row) const {
    const size_t from = index(row.agent);
    const size_t to = index(row.to);
    const size_t low = std::min(from, to);
    const size_t high = std::max(from, to);
    const size_t span = columns_[high].start - columns_[low].start - 1;
    std::string label = ' ' + row.text + ' ';
    if (label.size() + 4 > span) label.clear();
    const std::string_view head = to > from ? glyphs_.right : glyphs_.left;
    const std::string rest = repeat(glyphs_.dash, span - 1 - label.size() - display_width(head));
    const std::string arrow = to > from ? fmt::format("{}{}{}{}", glyphs_.dash, label, rest, head)
                                        : fmt::format("{}{}{}{}", head, rest, label, glyphs_.dash);
    std::string text = std::string(kMargin + gutter_ + 1, ' ');
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > low && i < high) continue;
      text += bar();
      if (i == low) {
        text += style_.paint(Ink::Yellow, arrow);
      } else {
        text += std::string(columns_[i].width - 1, ' ');
      }
    }
    return text;
  }

  std::string stacked() {
    size_t longest = 5;
    for (const std::string& name : names_) longest = std::max(longest, display_width(name));
    longest = std::min(longest, options_.width / 3);
    const size_t before = kMargin + gutter_ + 1 + longest + 2;
    const size_t width = std::max(options_.width > before + 1 ? options_.width - before - 1 : 0, kShortText);
    size_t texts = 0;
    for (const Column& column : columns_) texts = std::max(texts, column.texts);
    emit(style_.paint(Ink::Dim, fmt::format("{:{}}{:>{}} {}", "", kMargin, "step", gutter_, "agent")));
    for (const TimelineRow& row : timeline_.rows) {
      if (row.what == TimelineRow::What::Switch) {
        const std::string arrow =
            fmt::format("{} {} {} {}", glyphs_.dash, row.text, glyphs_.right, names_[index(row.to)]);
        emit(std::string(before + 1, ' ') + style_.paint(Ink::Yellow, fit(arrow, width, glyphs_.ellipsis)));
        continue;
      }
      if (!in_column(row)) {
        result_ += whole(row);
        continue;
      }
      const size_t own = index(row.agent);
      const auto lines = fit_cell(row, width, texts);
      for (size_t n = 0; n < lines.size(); ++n) {
        const std::string name = n == 0 ? shorten_name(names_[own], longest) : "";
        emit(gutter(row, n == 0) + style_.paint(ink(own), pad(name, longest)) + ' ' +
             (n == 0 ? mark(row) : " ") + ' ' + paint(row, lines[n]));
      }
    }
    return std::move(result_);
  }

  Ink ink(size_t i) const { return agent_ink(timeline_.agents, timeline_.agents[i]); }

  static constexpr size_t kFrame = 4;  // the line, the mark, and a space on each side of a cell

  const Timeline& timeline_;
  const LayoutOptions& options_;
  const Style style_;
  const Glyphs& glyphs_;
  std::vector<std::string> names_;
  std::vector<Column> columns_;
  size_t gutter_ = 0;
  std::string result_;
};

}  // namespace

std::string lay_out(const Timeline& timeline, const Names& names, const LayoutOptions& options) {
  return Layout(timeline, names, options).text();
}

Ink agent_ink(const std::vector<AgentId>& agents, AgentId agent) {
  static constexpr std::array<Ink, 5> kInks = {Ink::Cyan, Ink::Magenta, Ink::Green, Ink::Blue, Ink::Yellow};
  const auto at = std::find(agents.begin(), agents.end(), agent);
  return kInks[static_cast<size_t>(at - agents.begin()) % kInks.size()];
}

}  // namespace slalom
