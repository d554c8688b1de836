#include "detect/kernels/console.h"

#include <algorithm>
#include <string>

#include "detect/kernels/console_report.h"

namespace slalom {
namespace {

constexpr uint32_t kLinesOfReport = 100;
constexpr size_t kMostLines = 2000;  // of all reports of an execution
constexpr size_t kMostOfLine = 400;  // bytes kept of a line; "Modules linked in:" can be long

}  // namespace

void ConsoleDetector::on_event(const Event& event) {
  if (event.op != OpKind::Console) return;
  const std::string_view text = console_text(event.text);
  if (starts_report(text)) state_.wanted = kLinesOfReport;
  if (state_.wanted == 0 || state_.lines.size() >= kMostLines) return;
  state_.wanted = ends_report(text) ? 0 : state_.wanted - 1;
  const auto begin = static_cast<uint32_t>(state_.text.size());
  const auto size = static_cast<uint32_t>(std::min(text.size(), kMostOfLine));
  state_.text.insert(state_.text.end(), text.begin(), text.begin() + size);
  state_.lines.push_back({begin, size, event.step, event.agent, event.pc});
}

void ConsoleDetector::on_end(const Outcome&) {
  std::vector<std::string_view> lines;
  for (const ConsoleState::Line& line : state_.lines)
    lines.emplace_back(state_.text.data() + line.begin, line.size);
  for (const ConsoleReport& found : find_reports(lines)) {
    Verdict verdict{
        .kind = found.kind, .severity = found.severity, .title = found.title, .detail = {}, .evidence = {}};
    for (size_t i = 0; i < found.lines; ++i) {
      if (i != 0) verdict.detail += '\n';
      verdict.detail += lines[found.line + i];
    }
    const ConsoleState::Line& first = state_.lines[found.line];
    verdict.evidence.push_back({first.step, first.agent, first.pc, "the kernel begins to report it"});
    report(std::move(verdict));
  }
}

}  // namespace slalom
