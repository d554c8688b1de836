#include "report/schedule_section.h"

#include <algorithm>

namespace slalom {
namespace {

constexpr size_t kMostListed = 16;  // a longer schedule is cut in the middle
constexpr size_t kFirstSwitches = 10;

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

class ScheduleSection {
 public:
  ScheduleSection(const ScheduleFacts& facts, Page& page) : in_(facts), page_(page) {}

  void add() {
    page_.heading("Schedule");
    const auto& switches = in_.finding.schedule.switches;
    const bool cut = switches.size() > kMostListed && in_.options.detail == TimelineDetail::Essential;
    if (in_.of_kernel && in_.log_follows && in_.options.detail == TimelineDetail::Essential)
      return kernel_schedule();
    std::vector<std::string> parts;
    for (size_t i = 0; i < switches.size(); ++i) {
      if (cut && i == kFirstSwitches) {
        const size_t left_out = switches.size() - kMostListed;
        parts.push_back(fmt::format("{} {} {}", page_.glyphs().ellipsis,
                                    plural(left_out, "switch", "switches"), page_.glyphs().ellipsis));
        i += left_out;
      }
      if (i == 0) {
        parts.push_back(fmt::format("Start {}", agent(switches[0].to)));
      } else if (cut && i == kFirstSwitches + switches.size() - kMostListed) {
        parts.push_back(fmt::format("{} {}", agent(switches[i].from), switch_text(i)));
      } else {
        parts.push_back(switch_text(i));
      }
    }
    if (!parts.empty()) page_.sentence(parts);
    data_choices();
    size_of_it();
  }

 private:
  std::string agent(AgentId id) const { return agent_text(in_.names, id); }
  std::string_view operation_word() const { return in_.of_kernel ? "instruction" : "operation"; }

  std::string switch_text(size_t i) const {
    const Switch& change = in_.finding.schedule.switches[i];
    const Leaving leaving = in_.log_follows && i > 0 ? in_.all.switches[i - 1].leaving : Leaving::Unknown;
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
    return fmt::format("{} {} {}", where, page_.glyphs().right, agent(change.to));
  }

  // Lists only preemptions one by one, because CPUs that wait give way again and again.
  void kernel_schedule() {
    const auto& switches = in_.finding.schedule.switches;
    std::vector<std::string> parts = {fmt::format("Start {}", agent(switches[0].to))};
    bool named = true;  // the part before names the agent that goes on
    size_t told = 0;
    const size_t all = decided_switches();
    for (size_t i = 1; i < switches.size();) {
      size_t end = i;
      while (end < switches.size() && !unforced(in_.all.switches[end - 1].leaving)) ++end;
      if (end - i > 2) {
        parts.push_back(fmt::format("{} {} of CPUs that wait or have ended", page_.glyphs().ellipsis,
                                    plural(end - i, "switch", "switches")));
        named = false;
        i = end;
        continue;
      }
      const bool decided = end == i;
      if (decided && all > kMostListed && told >= kFirstSwitches &&
          told + (kMostListed - kFirstSwitches) < all) {
        if (told == kFirstSwitches)
          parts.push_back(fmt::format("{} {} {}", page_.glyphs().ellipsis,
                                      plural(all - kMostListed, "preemption"), page_.glyphs().ellipsis));
        named = false;
      } else {
        parts.push_back(fmt::format("{}{}", named ? "" : agent(switches[i].from) + " ", switch_text(i)));
        named = true;
      }
      told += decided;
      ++i;
    }
    page_.sentence(parts);
    data_choices();
    size_of_it();
  }

  size_t decided_switches() const {
    return static_cast<size_t>(std::ranges::count_if(
        in_.all.switches, [](const AgentSwitch& change) { return unforced(change.leaving); }));
  }

  void data_choices() {
    const auto& data = in_.finding.schedule.data;
    if (data.empty()) return;
    const size_t shown =
        in_.options.detail == TimelineDetail::Everything ? data.size() : std::min(data.size(), kMostListed);
    std::vector<std::string> parts;
    for (size_t i = 0; i < shown; ++i)
      parts.push_back(fmt::format("{} chooses {} in its {} {}", agent(data[i].agent), data[i].value,
                                  ordinal(data[i].ops + 1), operation_word()));
    if (shown < data.size())
      parts.push_back(fmt::format("{} {} more", page_.glyphs().ellipsis, human_number(data.size() - shown)));
    page_.sentence(parts);
  }

  void size_of_it() {
    const auto count = [&](auto&& wanted) {
      return static_cast<uint64_t>(std::count_if(in_.all.switches.begin(), in_.all.switches.end(), wanted));
    };
    const uint64_t perhaps = count([](const AgentSwitch& s) { return unforced(s.leaving); });
    const uint64_t sure = perhaps - count([](const AgentSwitch& s) { return s.leaving == Leaving::Unknown; });
    std::string text = sure == perhaps
                           ? plural(sure, "preemption")
                           : fmt::format("Between {} and {}", sure, plural(perhaps, "preemption"));
    if (!in_.log_follows) text = plural(in_.finding.schedule.switches.size(), "switch", "switches");
    switch (in_.finding.minimality) {
      case Minimality::Unshrunk:
        text += not_shrunk(in_.options.shrinking);
        break;
      case Minimality::Minimal:
        text += "; minimal: each switch was proved necessary" + smaller_bounds(perhaps);
        break;
      case Minimality::Minimum:
        text += "; minimum: no schedule with fewer preemptions shows it";
        break;
    }
    const size_t before = in_.finding.original.switches.size();
    const size_t now = in_.finding.schedule.switches.size();
    if (in_.finding.minimality != Minimality::Unshrunk && before > now)
      text +=
          fmt::format(" (found with {}, now {})", plural(before, "switch", "switches"), human_number(now));
    page_.paragraph(text + '.');
  }

  // For a schedule that may not have the fewest preemptions.
  std::string smaller_bounds(uint64_t preemptions) const {
    if (in_.finding.excluded == 1) return ", and no schedule without a preemption shows it";
    if (in_.finding.excluded > 1)
      return fmt::format(", and no schedule with fewer than {} preemptions shows it", in_.finding.excluded);
    return preemptions > 0 ? "; not every schedule with fewer preemptions was tried" : "";
  }

  const ScheduleFacts& in_;
  Page& page_;
};

}  // namespace

void add_schedule_section(const ScheduleFacts& facts, Page& page) {
  ScheduleSection(facts, page).add();
}

}  // namespace slalom
