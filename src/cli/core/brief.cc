// Summarises a finding in two or three lines, where the whole report would be too long.
#include "cli/core/command.h"
#include "report/text.h"

namespace slalom {

std::string brief(const Finding& finding, const std::string& capsule, const Style& style) {
  const Severity severity = finding.verdict.severity;
  const Ink ink = severity == Severity::Failure ? Ink::Red
                  : severity == Severity::Race  ? Ink::Yellow
                                                : Ink::Magenta;
  const size_t switches = finding.schedule.switches.size() - !finding.schedule.switches.empty();
  std::string text = wrap(style.paint(ink, name(severity)) + ": " + printable(finding.verdict.title),
                          terminal_width(), 0, 2);
  const std::string replays =
      finding.replays_tried == 0
          ? ""
          : fmt::format("; replayed {}/{}", finding.replays_same, finding.replays_tried);
  text += fmt::format("  in {}; seen in {}; {} ({}){}\n", printable(finding.target.name),
                      plural(finding.occurrences, "execution"), plural(switches, "switch", "switches"),
                      name(finding.minimality), replays);
  if (!capsule.empty()) text += fmt::format("  slalom replay {}\n", printable(capsule));
  return text;
}

}  // namespace slalom
