#include "report/kernels/kernel_timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "report/kernels/kernel_relevance.h"
#include "report/kernels/kernel_selection.h"

namespace slalom {
namespace {

constexpr size_t kMostRuns = 24;  // a longer schedule is shown by its ends
constexpr size_t kTurns = 3;      // this many runs that only wait become one row
constexpr size_t kColumns = 3;    // with more columns, interrupts without an interesting operation get none

class KernelTimelineMaker {
 public:
  KernelTimelineMaker(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
                      const Outcome& outcome, const Names& names, TimelineDetail detail, const Glyphs& glyphs)
      : trace_(trace),
        switches_(switches),
        finding_(finding),
        outcome_(outcome),
        names_(names),
        everything_(detail == TimelineDetail::Everything),
        glyphs_(glyphs),
        selection_(select_operations(trace, switches, finding, names, detail)) {}

  Timeline make() {
    choose_agents();
    add_runs();
    add_end();
    return std::move(result_);
  }

 private:
  Leaving leaving(size_t run) const { return selection_.leaving[run]; }

  void choose_agents() {
    std::map<AgentId, uint64_t> counts;
    for (const KernelRun& run : trace_.runs) counts[run.agent] += run.end - run.first;
    for (AgentId agent : switches_.agents) {
      const bool drop = !everything_ && switches_.agents.size() > kColumns && agent.parent() &&
                        !selection_.interesting.contains(agent);
      if (drop) {
        result_.dropped.push_back({agent, counts[agent]});
      } else {
        result_.agents.push_back(agent);
      }
    }
  }

  bool has_column(AgentId agent) const { return std::ranges::binary_search(result_.agents, agent); }

  // Returns whether the run only waits, until the agent has to give way.
  bool only_waits(size_t number) const {
    const KernelRun& run = trace_.runs[number];
    const bool last = number + 1 == trace_.runs.size();
    return (last || !unforced(leaving(number))) &&
           std::none_of(selection_.keep.begin() + static_cast<ptrdiff_t>(run.first),
                        selection_.keep.begin() + static_cast<ptrdiff_t>(run.end),
                        [](bool keep) { return keep; });
  }

  void add_whole(std::string text) {
    TimelineRow row;
    row.what = TimelineRow::What::Whole;
    row.text = fmt::format("{} {}", glyphs_.ellipsis, text);
    result_.rows.push_back(std::move(row));
  }

  void add_runs() {
    std::vector<size_t> shown;
    for (size_t run = 0; run < trace_.runs.size(); ++run)
      if (has_column(trace_.runs[run].agent)) shown.push_back(run);
    // Agents that wait for each other take turns waiting. Show that once.
    std::vector<std::pair<size_t, size_t>> parts;  // parts of `shown`: one run, or several that only wait
    for (size_t k = 0; k < shown.size();) {
      size_t end = k;
      while (end < shown.size() && only_waits(shown[end])) ++end;
      if (end - k < kTurns) end = k + 1;
      parts.emplace_back(k, end);
      k = end;
    }
    const bool cut = !everything_ && parts.size() > kMostRuns;
    for (size_t p = 0; p < parts.size(); ++p) {
      if (cut && p == kMostRuns / 2) {
        const size_t left_out = parts.size() - kMostRuns;
        add_whole(plural(left_out, "more switch", "more switches"));
        p += left_out;
      }
      const auto [k, end] = parts[p];
      if (end - k > 1) {
        add_waits(shown, k, end);
        continue;
      }
      add_run(shown[k]);
      if (end < shown.size() && trace_.runs[shown[end]].agent != trace_.runs[shown[k]].agent)
        add_switch(shown[k], trace_.runs[shown[end]].agent);
    }
  }

  void add_waits(const std::vector<size_t>& shown, size_t first, size_t end) {
    std::map<AgentId, Place> at;  // where each agent waits
    for (size_t k = first; k < end; ++k) {
      const KernelRun& run = trace_.runs[shown[k]];
      for (size_t i = run.first; i < run.end; ++i)
        if (trace_.operations[i].access != nullptr) at[run.agent] = trace_.operations[i].access->pc();
    }
    std::vector<std::string> who;
    for (const auto& [agent, place] : at)
      who.push_back(
          fmt::format("{} in {}", printable(names_.agent(agent)), function_of(names_.place(place))));
    add_whole(fmt::format("{} of waiting: {}", plural(end - first, "turn"), fmt::join(who, ", ")));
  }

  void add_run(size_t number) {
    const KernelRun& run = trace_.runs[number];
    last_ = Last();
    for (size_t i = run.first; i < run.end; ++i) {
      const KernelOperation& operation = trace_.operations[i];
      const bool calls = operation.is_event(OpKind::SyscallEnter);
      if (calls) ordinals_[operation.agent].push_back(operation.event->value);
      if (operation.is_event(OpKind::SyscallExit) && selection_.keep[i] && merge_result(operation)) continue;
      if (!selection_.keep[i]) {
        folded_ += operation.access != nullptr && is_memory(operation.access->op());
        continue;
      }
      // A CPU looks up an interrupt's handler before it reports the start of the interrupt.
      if (!operation.is_event(OpKind::IrqEnter)) flush_fold(run.agent);
      if (operation.access != nullptr) {
        i = add_access(i, run.end);
      } else {
        add_event(i);
      }
    }
    flush_fold(run.agent);
  }

  // Returns the last operation that the row describes.
  size_t add_access(size_t i, size_t end) {
    const KernelOperation& operation = trace_.operations[i];
    const Access* after = nullptr;
    if (i + 1 < end && trace_.operations[i + 1].access != nullptr && !operation.writes()) {
      const KernelOperation& next = trace_.operations[i + 1];
      if (next.step == operation.step && next.access->pc() == operation.access->pc() && next.writes() &&
          next.access->address() == operation.access->address())
        after = next.access;
    }
    const size_t last = after == nullptr ? i : i + 1;
    TimelineRow row;
    row.agent = operation.agent;
    row.step = operation.step;
    row.text = place_and_line(names_, operation.access->pc());
    row.note = access_text(*operation.access, after, names_);
    row.wraps = true;
    if (selection_.evidence[i] || selection_.evidence[last]) row.mark = TimelineRow::Mark::Evidence;
    if (!repeats(row)) push(std::move(row));
    return last;
  }

  void add_event(size_t i) {
    const KernelOperation& operation = trace_.operations[i];
    const Event& event = *operation.event;
    TimelineRow row;
    row.agent = operation.agent;
    row.step = operation.step;
    row.wraps = true;
    if (selection_.evidence[i]) row.mark = TimelineRow::Mark::Evidence;
    switch (event.op) {
      case OpKind::SyscallEnter:
        row.text = call_text(operation.agent);
        last_.call = result_.rows.size();
        break;
      case OpKind::SyscallExit:
        row.text =
            fmt::format("{} = {}", call_name(operation.agent), printable(names_.system_result(event.value)));
        break;
      case OpKind::IrqEnter:
        row.text = "interrupt begins";
        row.note = fmt::format("at {}", place_and_line(names_, event.pc));
        break;
      case OpKind::Note:
        row.text = fmt::format("\"{}\"", printable(event.text));
        break;
      case OpKind::Console:
        row.text = printable(event.text);
        row.failed = selection_.evidence[i];
        break;
      case OpKind::Fail:
        row.text = printable(event.text);
        row.failed = true;
        break;
      default:
        row.text = describe(event.op, event.object, event.other, names_);
    }
    push(std::move(row));
  }

  std::string call_text(AgentId agent) const {
    const auto& calls = ordinals_.at(agent);
    return printable(names_.system_call(agent, calls.size() - 1, calls.back()));
  }
  // Returns "pwrite64" for "w = pwrite64(fd, ...)".
  std::string call_name(AgentId agent) const {
    const auto calls = ordinals_.find(agent);
    if (calls == ordinals_.end()) return "system call";
    std::string text = call_text(agent);
    text = text.substr(0, text.find('('));
    const size_t equals = text.find("= ");
    return equals == std::string::npos ? text : text.substr(equals + 2);
  }

  // A call without visible contents becomes one row.
  bool merge_result(const KernelOperation& operation) {
    if (everything_ || !is_last(last_.call)) return false;
    TimelineRow& row = result_.rows.back();
    row.note = fmt::format("= {}", printable(names_.system_result(operation.event->value)));
    if (folded_ > 0) row.note += fmt::format(" ({})", plural(folded_, "access", "accesses"));
    folded_ = 0;
    last_.call.reset();
    return true;
  }

  bool is_last(std::optional<size_t> row) const { return row && *row + 1 == result_.rows.size(); }

  bool repeats(const TimelineRow& row) {
    if (everything_ || !is_last(last_.row)) return false;
    TimelineRow& last = result_.rows.back();
    if (last.agent != row.agent || last.text != row.text || last_.note != row.note || last.mark != row.mark)
      return false;
    last.note = fmt::format("{}  {}{}", last_.note, glyphs_.times, ++last_.times);
    return true;
  }

  void push(TimelineRow row) {
    last_.row = result_.rows.size();
    last_.note = row.note;
    last_.times = 1;
    result_.rows.push_back(std::move(row));
  }

  void flush_fold(AgentId agent) {
    const uint64_t accesses = std::exchange(folded_, 0);
    if (accesses == 0) return;
    TimelineRow row;
    row.what = TimelineRow::What::Pause;
    row.agent = agent;
    row.text = fmt::format("{} {}", glyphs_.ellipsis, plural(accesses, "access", "accesses"));
    push(std::move(row));
  }

  void add_switch(size_t run, AgentId to) {
    const AgentId from = trace_.runs[run].agent;
    const Leaving why = leaving(run);
    const Access* next = trace_.next_access(run);
    TimelineRow row;
    row.agent = from;
    if (why == Leaving::Ended) return;
    if (next != nullptr && why != Leaving::Interrupted) {
      TimelineRow stands;
      stands.what = TimelineRow::What::Pause;
      stands.agent = from;
      stands.text = fmt::format("{} {}", why == Leaving::Blocked ? "waits before" : "stops before",
                                place_and_line(names_, next->pc()));
      stands.wraps = true;
      push(std::move(stands));
    }
    if (!unforced(why)) return;
    row.what = TimelineRow::What::Switch;
    row.to = to;
    row.text = why == Leaving::Preempted     ? "preempted"
               : why == Leaving::Interrupted ? "interrupted"
                                             : "switch";
    push(std::move(row));
  }

  void add_end() {
    const auto ending = [&](std::string text) {
      TimelineRow row;
      row.what = TimelineRow::What::Ending;
      row.failed = true;
      row.text = std::move(text);
      result_.rows.push_back(std::move(row));
    };
    if (const auto* deadlock = std::get_if<Deadlocked>(&outcome_)) {
      for (const auto& waiting : deadlock->waiting) {
        if (!has_column(waiting.agent)) continue;
        TimelineRow row;
        row.agent = waiting.agent;
        row.failed = row.wraps = true;
        row.text = fmt::format("waits for ever at {}", place_and_line(names_, waiting.pc));
        result_.rows.push_back(std::move(row));
      }
      return ending("nothing can run any more");
    }
    if (!std::holds_alternative<Exited>(outcome_)) return ending(outcome_text(outcome_, names_));
    if (finding_.verdict.severity == Severity::Failure) ending(printable(finding_.verdict.title));
  }

  const KernelTrace& trace_;
  const Interleaving& switches_;
  const Finding& finding_;
  const Outcome& outcome_;
  const Names& names_;
  const bool everything_;
  const Glyphs& glyphs_;
  const KernelSelection selection_;
  std::map<AgentId, std::vector<int64_t>> ordinals_;  // the calls of each agent so far
  uint64_t folded_ = 0;
  struct Last {
    std::optional<size_t> row;   // the row that push() made
    std::optional<size_t> call;  // a call that has not returned
    std::string note;
    uint64_t times = 1;
  };
  Last last_;
  Timeline result_;
};

}  // namespace

Timeline make_kernel_timeline(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
                              const Outcome& outcome, const Names& names, TimelineDetail detail,
                              const Glyphs& glyphs) {
  return KernelTimelineMaker(trace, switches, finding, outcome, names, detail, glyphs).make();
}

}  // namespace slalom
