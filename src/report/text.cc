#include "report/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "report/core/object_names.h"
#include "report/core/page.h"
#include "report/finding_words.h"
#include "report/kernels/kernel_calls.h"
#include "report/kernels/kernel_timeline.h"
#include "report/schedule_section.h"

namespace slalom {
namespace {

constexpr size_t kIndent = Page::kIndent;
constexpr size_t kLongText = 60;  // longest text of an operation outside the timeline

std::string_view not_replayed(CutShort why) {
  switch (why) {
    case CutShort::No:
      return "";
    case CutShort::Interrupted:
      return " (interrupted)";
    case CutShort::OutOfTime:
      return " (no more, since the time was up)";
    case CutShort::LongExecutions:
      return " (no more, since its executions are long)";
    case CutShort::RaceNotAsked:
      return " (races are with --prove all)";
  }
  return "";
}

class Report {
 public:
  // `objects` is nullptr if no names need an explanation.
  Report(Finding finding, const TraceLog& log, const Names& names, const TextOptions& options,
         const ObjectNames* objects = nullptr)
      : finding_(std::move(finding)),
        log_(log),
        names_(names),
        objects_(objects),
        options_(options),
        page_(options.width, options.colour, options.ascii),
        kernel_(is_kernel_trace(log) ? read_kernel_trace(log) : KernelTrace()),
        all_(is_kernel() ? kernel_switches(kernel_, finding_.schedule) : read_interleaving(log, names)) {
    believe_choice_points();
  }

  std::string text() {
    title();
    timeline();
    calls();
    why();
    objects();
    add_schedule_section({finding_, names_, options_, all_, is_kernel(), log_follows_schedule()}, page_);
    found();
    replay();
    return page_.text();
  }

 private:
  bool is_kernel() const { return !kernel_.operations.empty(); }

  static Leaving leaving(ChoiceKind kind, Leaving otherwise) {
    switch (kind) {
      case ChoiceKind::Running:
        return otherwise == Leaving::Interrupted ? otherwise : Leaving::Preempted;
      case ChoiceKind::Yielded:
        return Leaving::Yielded;
      case ChoiceKind::Blocked:
        return Leaving::Blocked;
      case ChoiceKind::Ended:
        return Leaving::Ended;
      default:
        return otherwise;
    }
  }

  // Returns whether the schedule's switches after the start are those of the log. If not, the log is of
  // another execution, and the report describes the log alone.
  bool log_follows_schedule() const {
    const auto& switches = finding_.schedule.switches;
    if (switches.size() != all_.switches.size() + 1) return false;
    for (size_t i = 0; i < all_.switches.size(); ++i) {
      const AgentSwitch& seen = all_.switches[i];
      if (switches[i + 1] != Switch{seen.from, seen.from_ops, seen.to}) return false;
    }
    return true;
  }

  void believe_choice_points() {
    if (!log_follows_schedule() || options_.switch_kinds.size() != finding_.schedule.switches.size()) return;
    for (size_t i = 0; i < all_.switches.size(); ++i) {
      Leaving& known = all_.switches[i].leaving;
      known = leaving(options_.switch_kinds[i + 1], known);
    }
  }

  std::string agent(AgentId id) const { return agent_text(names_, id); }
  std::string painted_agent(AgentId id) const {
    return page_.style().paint(agent_ink(all_.agents, id), agent(id));
  }
  void title() {
    const Verdict& verdict = finding_.verdict;
    const auto [glyph, ink] = [&]() -> std::pair<std::string_view, Ink> {
      switch (verdict.severity) {
        case Severity::Failure:
          return {page_.glyphs().failure, Ink::Red};
        case Severity::Race:
          return {page_.glyphs().race, Ink::Yellow};
        default:
          return {page_.glyphs().suspicion, Ink::Magenta};
      }
    }();
    const std::string label = fmt::format("{} {} ({})", glyph, name(verdict.severity), name(verdict.kind));
    // Painted word by word, so that a break inside the title does not carry colour over the margin.
    std::string painted = page_.style().paint(Ink::Bold, page_.style().paint(ink, label)) + ' ';
    std::string word;
    for (char c : printable(verdict.title) + ' ') {
      if (c != ' ') {
        word += c;
        continue;
      }
      painted += page_.style().paint(Ink::Bold, word) + ' ';
      word.clear();
    }
    page_.paragraph(painted, 0, kIndent);
    if (!verdict.detail.empty()) {
      page_.add("\n");
      if (is_kernel()) {
        console(verdict.detail);
      } else {
        page_.paragraph(printable(verdict.detail));
      }
    }
  }

  // Adds the kernel's message, or a summary of it, with the message's own line breaks.
  void console(const std::string& detail) {
    const bool all = options_.detail == TimelineDetail::Everything;
    std::istringstream in(all ? detail : console_summary(detail));
    for (std::string line; std::getline(in, line);) {
      const size_t indent = std::min(line.find_first_not_of(' '), line.size());
      page_.add(wrap(printable(line.substr(indent)), page_.width(), kIndent + indent, kIndent + indent + 2));
    }
  }

  void timeline() {
    const Timeline timeline =
        is_kernel() ? make_kernel_timeline(kernel_, all_, finding_, log_.outcome(), names_, options_.detail,
                                           page_.glyphs())
                    : make_timeline(all_, finding_, log_.outcome(), names_, options_.detail, page_.glyphs());
    page_.heading("Timeline");
    if (timeline.rows.empty()) page_.paragraph("nothing was recorded");
    page_.add(lay_out(timeline, names_, {page_.width(), page_.style(), options_.ascii}));
    if (!timeline.dropped.empty()) {
      std::vector<std::string> texts;
      for (const auto& [id, operations] : timeline.dropped)
        texts.push_back(fmt::format("{} ({})", agent(id), plural(operations, "operation")));
      page_.paragraph(fmt::format("Not shown: {}, which {} no part in this.", fmt::join(texts, ", "),
                                  texts.size() == 1 ? "has" : "have"));
    }
    evidence();
  }

  void evidence() {
    if (finding_.verdict.evidence.empty()) return;
    page_.add("\n");
    std::vector<Evidence> items = finding_.verdict.evidence;
    std::stable_sort(items.begin(), items.end(),
                     [](const Evidence& a, const Evidence& b) { return a.step < b.step; });
    for (const Evidence& item : items) {
      const std::string place = place_and_line(names_, item.pc);
      page_.paragraph(
          fmt::format("{} {}{}{}: {}", page_.style().paint(Ink::Red, page_.glyphs().evidence),
                      painted_agent(item.agent), place.empty() ? "" : " at ", place, printable(item.text)),
          kIndent, kIndent + 2);
    }
  }

  void calls() {
    if (!is_kernel()) return;
    const auto lines =
        kernel_calls(kernel_, all_, finding_, log_.outcome(), names_, options_.detail, page_.glyphs());
    if (lines.empty()) return;
    page_.heading("Calls");
    for (const CallLine& line : lines) {
      const size_t indent = kIndent + 2 * line.indent;
      std::string text =
          line.agent ? page_.style().paint(agent_ink(all_.agents, line.agent), line.text) : line.text;
      if (line.evidence)
        text = fmt::format("{} {}", page_.style().paint(Ink::Red, page_.glyphs().evidence), text);
      page_.add(wrap(text, page_.width(), indent, indent + 4));
    }
  }

  std::string point_text(const OrderPoint& point) const {
    return fmt::format("{}: {}", painted_agent(point.agent), operation_text(point));
  }

  std::string operation_text(const OrderPoint& point) const {
    if (const Operation* operation = all_.find(point.agent, point.ops)) {
      const std::string text = fit(operation->text, kLongText, page_.glyphs().ellipsis);
      const std::string_view word = access_word(operation->kind);
      return word.empty() ? text : fmt::format("{} ({})", text, word);
    }
    if (!point.text.empty()) return fit(printable(point.text), kLongText, page_.glyphs().ellipsis);
    // An operation that an agent waits for at the end never happened.
    if (const auto* deadlock = std::get_if<Deadlocked>(&log_.outcome()))
      for (const auto& waiting : deadlock->waiting)
        if (waiting.agent == point.agent) return describe(waiting.op, waiting.object, {}, names_);
    return place_and_line(names_, point.pc);
  }

  void why() {
    if (finding_.constraints.empty()) return;
    page_.heading("Why");
    if (is_kernel()) return kernel_why();
    const bool one = finding_.constraints.size() == 1;
    page_.paragraph(one ? "The bug needs this order; turned round, it is gone:"
                        : "The bug needs all of these orders; with any of them turned round, it is gone:");
    for (const OrderConstraint& constraint : finding_.constraints)
      order(point_text(constraint.before), point_text(constraint.after));
  }

  void order(const std::string& before, const std::string& after) {
    const std::string bullet = page_.style().paint(Ink::Yellow, page_.glyphs().point);
    const std::string line =
        fmt::format("{} {} {} {}", bullet, before, page_.style().paint(Ink::Bold, "before"), after);
    if (kIndent + display_width(line) <= page_.prose_width()) return page_.paragraph(line);
    page_.paragraph(fmt::format("{} {}", bullet, before), kIndent, kIndent + 4);
    page_.paragraph(fmt::format("{} {}", page_.style().paint(Ink::Bold, "before"), after), kIndent + 4,
                    kIndent + 6);
  }

  // Explains the names that are not in the source.
  void objects() {
    const std::vector<NamedObject> all =
        objects_ == nullptr ? std::vector<NamedObject>() : objects_->explained({page_.text()});
    if (all.empty()) return;
    page_.heading("Objects");
    for (const NamedObject& object : all) {
      std::string text = printable(object.name) + ": ";
      if (object.kind == NamedObject::Kind::Local) {
        text += fmt::format("a variable of {}", printable(object.function));
        if (object.agent != AgentId::initial(0)) text += fmt::format(" in {}", painted_agent(object.agent));
      } else {
        if (!object.type.empty()) text += printable(object.type) + ", ";
        text += plural(object.size, "byte");
        if (object.kind == NamedObject::Kind::Block)
          text += fmt::format(", {} by {} at {}", object.is_freed ? "freed" : "allocated",
                              painted_agent(object.agent), place_and_line(names_, object.place));
      }
      page_.paragraph(text, kIndent, kIndent + 2);
    }
  }

  void kernel_why() {
    page_.paragraph(
        "The bug needs this order of what the CPUs do from these places on, up to where they could be "
        "stopped "
        "next; turned round, it is gone:");
    std::set<KernelOrder> told;
    size_t folded = 0;
    for (const OrderConstraint& constraint : finding_.constraints) {
      const KernelOrder words = kernel_order(constraint, kernel_, names_);
      if (!told.insert(words).second) continue;
      if (words.is_bookkeeping && options_.detail == TimelineDetail::Essential)
        ++folded;
      else
        order(words.before, words.after);
    }
    if (folded > 0)
      page_.paragraph(fmt::format(
          "{} {}of what a CPU keeps of itself (--full shows {})", page_.glyphs().ellipsis,
          told.size() > folded ? fmt::format("and {} more, ", folded) : plural(folded, "order") + " ",
          folded == 1 ? "it" : "them"));
  }

  void found() {
    page_.heading("Found");
    std::string target = printable(finding_.target.name);
    std::vector<std::string> params;
    for (const auto& [key, value] : finding_.target.params)
      params.push_back(fmt::format("{} = {}", printable(key), value));
    if (!params.empty()) target += fmt::format(" ({})", fmt::join(params, ", "));

    std::string text;
    if (!finding_.target.name.empty()) text = fmt::format("In {}, by ", target);
    text += fmt::format("{}{} with seed {}, in the {} execution", text.empty() ? "By " : "",
                        finding_.strategy.empty() ? "an unnamed strategy" : printable(finding_.strategy),
                        finding_.seed, ordinal(finding_.execution + 1));
    if (options_.executions != 0) text += fmt::format(" of {}", human_number(options_.executions));
    if (finding_.occurrences > 1)
      text += fmt::format("; {} executions show it", human_number(finding_.occurrences));
    page_.paragraph(text + '.');
    replays();
  }

  void replays() {
    const std::string_view early = not_replayed(options_.replaying);
    if (finding_.replays_tried == 0) return page_.paragraph(fmt::format("Not replayed yet{}.", early));
    const std::string count = fmt::format("{}/{}{}", finding_.replays_same, finding_.replays_tried, early);
    if (finding_.replays_same == finding_.replays_tried)
      return page_.paragraph(fmt::format("{} the same bug every time.",
                                         page_.style().paint(Ink::Green, "Replayed " + count + ":")));
    page_.paragraph(fmt::format("{} the target does something slalom does not control.",
                                page_.style().paint(Ink::Red, "Replayed only " + count + ":")));
    for (const std::string& one : options_.differences) page_.paragraph("differs: " + printable(one));
  }

  void replay() {
    if (options_.replay_command.empty()) return;
    page_.heading("See it again");
    // Never wrapped, so that users can copy it.
    page_.add(std::string(kIndent, ' ') + options_.replay_command + '\n');
  }

  const Finding finding_;
  const TraceLog& log_;
  const Names& names_;
  const ObjectNames* const objects_;
  const TextOptions& options_;
  Page page_;
  const KernelTrace kernel_;  // empty if the target is no kernel
  Interleaving all_;          // without operations if the target is a kernel
};

}  // namespace

std::string text_report(const Finding& finding, const TraceLog& log, const Names& names,
                        const TextOptions& options) {
  if (is_kernel_trace(log)) return Report(finding, log, names, options).text();
  const ObjectNames named(log, names);
  return Report(in_words(finding, log, names), log, named, options, &named).text();
}

}  // namespace slalom
