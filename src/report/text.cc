#include "report/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "report/core/object_names.h"
#include "report/finding_words.h"
#include "report/kernels/kernel_calls.h"
#include "report/kernels/kernel_timeline.h"

namespace slalom {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kMostListed = 16;  // a longer schedule is cut in the middle
constexpr size_t kFirstSwitches = 10;
constexpr size_t kProse = 100;    // wider lines of text are hard to read
constexpr size_t kLongText = 60;  // longest text of an operation outside the timeline

std::string_view not_shrunk(CutShort why) {
  switch (why) {
    case CutShort::No:
      return "; not shrunk";
    case CutShort::Interrupted:
      return "; not shrunk to the end";
    case CutShort::OutOfTime:
      return "; not shrunk to the end, since the time was up";
    case CutShort::LongExecutions:
      return "; not shrunk to the end, since its executions are long";
    case CutShort::RaceNotAsked:
      return "; not shrunk (races are with --prove all)";
  }
  return "";
}

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
        width_(std::max<size_t>(options.width, 40)),
        style_{options.colour},
        glyphs_(glyphs(options.ascii)),
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
    schedule();
    found();
    replay();
    return std::move(text_);
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

  std::string agent(AgentId id) const { return id ? printable(names_.agent(id)) : "nobody"; }
  std::string painted_agent(AgentId id) const { return style_.paint(agent_ink(all_.agents, id), agent(id)); }
  void heading(std::string_view text) { text_ += '\n' + style_.paint(Ink::Bold, text) + '\n'; }
  void paragraph(const std::string& text, size_t indent = kIndent, size_t next = kIndent) {
    text_ += wrap(text, std::min(width_, kProse), indent, next);
  }
  // Adds a sentence of parts. Breaks lines between parts rather than inside them.
  void sentence(const std::vector<std::string>& parts) {
    std::string line;
    size_t indent = kIndent;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string part = parts[i] + (i + 1 < parts.size() ? ";" : ".");
      if (!line.empty() &&
          indent + display_width(line) + 1 + display_width(part) > std::min(width_, kProse)) {
        paragraph(line, indent, kIndent + 2);
        line.clear();
        indent = kIndent + 2;
      }
      line += (line.empty() ? "" : " ") + part;
    }
    paragraph(line, indent, kIndent + 2);
  }

  void title() {
    const Verdict& verdict = finding_.verdict;
    const auto [glyph, ink] = [&]() -> std::pair<std::string_view, Ink> {
      switch (verdict.severity) {
        case Severity::Failure:
          return {glyphs_.failure, Ink::Red};
        case Severity::Race:
          return {glyphs_.race, Ink::Yellow};
        default:
          return {glyphs_.suspicion, Ink::Magenta};
      }
    }();
    const std::string label = fmt::format("{} {} ({})", glyph, name(verdict.severity), name(verdict.kind));
    // Painted word by word, so that a break inside the title does not carry colour over the margin.
    std::string painted = style_.paint(Ink::Bold, style_.paint(ink, label)) + ' ';
    std::string word;
    for (char c : printable(verdict.title) + ' ') {
      if (c != ' ') {
        word += c;
        continue;
      }
      painted += style_.paint(Ink::Bold, word) + ' ';
      word.clear();
    }
    paragraph(painted, 0, kIndent);
    if (!verdict.detail.empty()) {
      text_ += '\n';
      if (is_kernel()) {
        console(verdict.detail);
      } else {
        paragraph(printable(verdict.detail));
      }
    }
  }

  // Adds the kernel's message, or a summary of it, with the message's own line breaks.
  void console(const std::string& detail) {
    const bool all = options_.detail == TimelineDetail::Everything;
    std::istringstream in(all ? detail : console_summary(detail));
    for (std::string line; std::getline(in, line);) {
      const size_t indent = std::min(line.find_first_not_of(' '), line.size());
      text_ += wrap(printable(line.substr(indent)), width_, kIndent + indent, kIndent + indent + 2);
    }
  }

  void timeline() {
    const Timeline timeline =
        is_kernel()
            ? make_kernel_timeline(kernel_, all_, finding_, log_.outcome(), names_, options_.detail, glyphs_)
            : make_timeline(all_, finding_, log_.outcome(), names_, options_.detail, glyphs_);
    heading("Timeline");
    if (timeline.rows.empty()) paragraph("nothing was recorded");
    text_ += lay_out(timeline, names_, {width_, style_, options_.ascii});
    if (!timeline.dropped.empty()) {
      std::vector<std::string> texts;
      for (const auto& [id, operations] : timeline.dropped)
        texts.push_back(fmt::format("{} ({})", agent(id), plural(operations, "operation")));
      paragraph(fmt::format("Not shown: {}, which {} no part in this.", fmt::join(texts, ", "),
                            texts.size() == 1 ? "has" : "have"));
    }
    evidence();
  }

  void evidence() {
    if (finding_.verdict.evidence.empty()) return;
    text_ += '\n';
    std::vector<Evidence> items = finding_.verdict.evidence;
    std::stable_sort(items.begin(), items.end(),
                     [](const Evidence& a, const Evidence& b) { return a.step < b.step; });
    for (const Evidence& item : items) {
      const std::string place = place_and_line(names_, item.pc);
      paragraph(
          fmt::format("{} {}{}{}: {}", style_.paint(Ink::Red, glyphs_.evidence), painted_agent(item.agent),
                      place.empty() ? "" : " at ", place, printable(item.text)),
          kIndent, kIndent + 2);
    }
  }

  void calls() {
    if (!is_kernel()) return;
    const auto lines =
        kernel_calls(kernel_, all_, finding_, log_.outcome(), names_, options_.detail, glyphs_);
    if (lines.empty()) return;
    heading("Calls");
    for (const CallLine& line : lines) {
      const size_t indent = kIndent + 2 * line.indent;
      std::string text = line.agent ? style_.paint(agent_ink(all_.agents, line.agent), line.text) : line.text;
      if (line.evidence) text = fmt::format("{} {}", style_.paint(Ink::Red, glyphs_.evidence), text);
      text_ += wrap(text, width_, indent, indent + 4);
    }
  }

  std::string point_text(const OrderPoint& point) const {
    return fmt::format("{}: {}", painted_agent(point.agent), operation_text(point));
  }

  std::string operation_text(const OrderPoint& point) const {
    if (const Operation* operation = all_.find(point.agent, point.ops)) {
      const std::string text = fit(operation->text, kLongText, glyphs_.ellipsis);
      const std::string_view word = access_word(operation->kind);
      return word.empty() ? text : fmt::format("{} ({})", text, word);
    }
    if (!point.text.empty()) return fit(printable(point.text), kLongText, glyphs_.ellipsis);
    // An operation that an agent waits for at the end never happened.
    if (const auto* deadlock = std::get_if<Deadlocked>(&log_.outcome()))
      for (const auto& waiting : deadlock->waiting)
        if (waiting.agent == point.agent) return describe(waiting.op, waiting.object, {}, names_);
    return place_and_line(names_, point.pc);
  }

  void why() {
    if (finding_.constraints.empty()) return;
    heading("Why");
    if (is_kernel()) return kernel_why();
    const bool one = finding_.constraints.size() == 1;
    paragraph(one ? "The bug needs this order; turned round, it is gone:"
                  : "The bug needs all of these orders; with any of them turned round, it is gone:");
    for (const OrderConstraint& constraint : finding_.constraints)
      order(point_text(constraint.before), point_text(constraint.after));
  }

  void order(const std::string& before, const std::string& after) {
    const std::string bullet = style_.paint(Ink::Yellow, glyphs_.point);
    const std::string line =
        fmt::format("{} {} {} {}", bullet, before, style_.paint(Ink::Bold, "before"), after);
    if (kIndent + display_width(line) <= std::min(width_, kProse)) return paragraph(line);
    paragraph(fmt::format("{} {}", bullet, before), kIndent, kIndent + 4);
    paragraph(fmt::format("{} {}", style_.paint(Ink::Bold, "before"), after), kIndent + 4, kIndent + 6);
  }

  // Explains the names that are not in the source.
  void objects() {
    const std::vector<NamedObject> all =
        objects_ == nullptr ? std::vector<NamedObject>() : objects_->explained({text_});
    if (all.empty()) return;
    heading("Objects");
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
      paragraph(text, kIndent, kIndent + 2);
    }
  }

  void kernel_why() {
    paragraph(
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
      paragraph(fmt::format(
          "{} {}of what a CPU keeps of itself (--full shows {})", glyphs_.ellipsis,
          told.size() > folded ? fmt::format("and {} more, ", folded) : plural(folded, "order") + " ",
          folded == 1 ? "it" : "them"));
  }

  std::string_view operation_word() const { return is_kernel() ? "instruction" : "operation"; }

  std::string switch_text(size_t i, bool follows) const {
    const Switch& change = finding_.schedule.switches[i];
    const Leaving leaving = follows && i > 0 ? all_.switches[i - 1].leaving : Leaving::Unknown;
    std::string where;
    switch (leaving) {
      case Leaving::Ended:
        where = "at its end";
        break;
      case Leaving::Yielded:
        where = fmt::format("yielding in its {} {}", ordinal(change.from_ops), operation_word());
        break;
      case Leaving::Blocked:
        where = fmt::format("blocked after its {} {}", ordinal(change.from_ops), operation_word());
        break;
      default:
        where = fmt::format("after its {} {}", ordinal(change.from_ops), operation_word());
    }
    if (change.from_ops == 0) where = fmt::format("before its 1st {}", operation_word());
    return fmt::format("{} {} {}", where, glyphs_.right, agent(change.to));
  }

  void schedule() {
    heading("Schedule");
    const auto& switches = finding_.schedule.switches;
    const bool follows = log_follows_schedule();
    const bool cut = switches.size() > kMostListed && options_.detail == TimelineDetail::Essential;
    if (is_kernel() && follows && options_.detail == TimelineDetail::Essential) return kernel_schedule();
    std::vector<std::string> parts;
    for (size_t i = 0; i < switches.size(); ++i) {
      if (cut && i == kFirstSwitches) {
        const size_t left_out = switches.size() - kMostListed;
        parts.push_back(fmt::format("{} {} {}", glyphs_.ellipsis, plural(left_out, "switch", "switches"),
                                    glyphs_.ellipsis));
        i += left_out;
      }
      if (i == 0) {
        parts.push_back(fmt::format("Start {}", agent(switches[0].to)));
      } else if (cut && i == kFirstSwitches + switches.size() - kMostListed) {
        parts.push_back(fmt::format("{} {}", agent(switches[i].from), switch_text(i, follows)));
      } else {
        parts.push_back(switch_text(i, follows));
      }
    }
    if (!parts.empty()) sentence(parts);
    data_choices();
    size_of_it(follows);
  }

  // Lists only preemptions one by one, because CPUs that wait give way again and again.
  void kernel_schedule() {
    const auto& switches = finding_.schedule.switches;
    std::vector<std::string> parts = {fmt::format("Start {}", agent(switches[0].to))};
    bool named = true;  // the part before names the agent that goes on
    size_t told = 0;
    const size_t all = decided_switches();
    for (size_t i = 1; i < switches.size();) {
      size_t end = i;
      while (end < switches.size() && !unforced(all_.switches[end - 1].leaving)) ++end;
      if (end - i > 2) {
        parts.push_back(fmt::format("{} {} of CPUs that wait or have ended", glyphs_.ellipsis,
                                    plural(end - i, "switch", "switches")));
        named = false;
        i = end;
        continue;
      }
      const bool decided = end == i;
      if (decided && all > kMostListed && told >= kFirstSwitches &&
          told + (kMostListed - kFirstSwitches) < all) {
        if (told == kFirstSwitches)
          parts.push_back(fmt::format("{} {} {}", glyphs_.ellipsis, plural(all - kMostListed, "preemption"),
                                      glyphs_.ellipsis));
        named = false;
      } else {
        parts.push_back(
            fmt::format("{}{}", named ? "" : agent(switches[i].from) + " ", switch_text(i, true)));
        named = true;
      }
      told += decided;
      ++i;
    }
    sentence(parts);
    data_choices();
    size_of_it(true);
  }

  size_t decided_switches() const {
    return static_cast<size_t>(std::ranges::count_if(
        all_.switches, [](const AgentSwitch& change) { return unforced(change.leaving); }));
  }

  void data_choices() {
    const auto& data = finding_.schedule.data;
    if (data.empty()) return;
    const size_t shown =
        options_.detail == TimelineDetail::Everything ? data.size() : std::min(data.size(), kMostListed);
    std::vector<std::string> parts;
    for (size_t i = 0; i < shown; ++i)
      parts.push_back(fmt::format("{} chooses {} in its {} {}", agent(data[i].agent), data[i].value,
                                  ordinal(data[i].ops + 1), operation_word()));
    if (shown < data.size())
      parts.push_back(fmt::format("{} {} more", glyphs_.ellipsis, human_number(data.size() - shown)));
    sentence(parts);
  }

  void size_of_it(bool follows) {
    const auto count = [&](auto&& wanted) {
      return static_cast<uint64_t>(std::count_if(all_.switches.begin(), all_.switches.end(), wanted));
    };
    const uint64_t perhaps = count([](const AgentSwitch& s) { return unforced(s.leaving); });
    const uint64_t sure = perhaps - count([](const AgentSwitch& s) { return s.leaving == Leaving::Unknown; });
    std::string text = sure == perhaps
                           ? plural(sure, "preemption")
                           : fmt::format("Between {} and {}", sure, plural(perhaps, "preemption"));
    if (!follows) text = plural(finding_.schedule.switches.size(), "switch", "switches");
    switch (finding_.minimality) {
      case Minimality::Unshrunk:
        text += not_shrunk(options_.shrinking);
        break;
      case Minimality::Minimal:
        text += "; minimal: each switch was proved necessary" + smaller_bounds(perhaps);
        break;
      case Minimality::Minimum:
        text += "; minimum: no schedule with fewer preemptions shows it";
        break;
    }
    const size_t before = finding_.original.switches.size();
    const size_t now = finding_.schedule.switches.size();
    if (finding_.minimality != Minimality::Unshrunk && before > now)
      text +=
          fmt::format(" (found with {}, now {})", plural(before, "switch", "switches"), human_number(now));
    paragraph(text + '.');
  }

  // For a schedule that may not have the fewest preemptions.
  std::string smaller_bounds(uint64_t preemptions) const {
    if (finding_.excluded == 1) return ", and no schedule without a preemption shows it";
    if (finding_.excluded > 1)
      return fmt::format(", and no schedule with fewer than {} preemptions shows it", finding_.excluded);
    return preemptions > 0 ? "; not every schedule with fewer preemptions was tried" : "";
  }

  void found() {
    heading("Found");
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
    paragraph(text + '.');
    replays();
  }

  void replays() {
    const std::string_view early = not_replayed(options_.replaying);
    if (finding_.replays_tried == 0) return paragraph(fmt::format("Not replayed yet{}.", early));
    const std::string count = fmt::format("{}/{}{}", finding_.replays_same, finding_.replays_tried, early);
    if (finding_.replays_same == finding_.replays_tried)
      return paragraph(
          fmt::format("{} the same bug every time.", style_.paint(Ink::Green, "Replayed " + count + ":")));
    paragraph(fmt::format("{} the target does something slalom does not control.",
                          style_.paint(Ink::Red, "Replayed only " + count + ":")));
    for (const std::string& one : options_.differences) paragraph("differs: " + printable(one));
  }

  void replay() {
    if (options_.replay_command.empty()) return;
    heading("See it again");
    // Never wrapped, so that users can copy it.
    text_ += std::string(kIndent, ' ') + options_.replay_command + '\n';
  }

  const Finding finding_;
  const TraceLog& log_;
  const Names& names_;
  const ObjectNames* const objects_;
  const TextOptions& options_;
  const size_t width_;
  const Style style_;
  const Glyphs& glyphs_;
  const KernelTrace kernel_;  // empty if the target is no kernel
  Interleaving all_;          // without operations if the target is a kernel
  std::string text_;
};

}  // namespace

std::string text_report(const Finding& finding, const TraceLog& log, const Names& names,
                        const TextOptions& options) {
  if (is_kernel_trace(log)) return Report(finding, log, names, options).text();
  const ObjectNames named(log, names);
  return Report(in_words(finding, log, names), log, named, options, &named).text();
}

}  // namespace slalom
