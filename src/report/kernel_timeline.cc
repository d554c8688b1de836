#include "report/kernel_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/kernel_relevance.h"

namespace slalom {
namespace {

constexpr size_t kRowsOfRun = 12;  // accesses between two switches
constexpr size_t kMostRuns = 24;   // a longer schedule is shown by its ends
constexpr size_t kColumns = 3;     // with more, interrupts that do nothing of interest have none

class Maker {
 public:
  Maker(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
        const Outcome& outcome, const Names& names, TimelineDetail detail, const Glyphs& glyphs)
      : trace_(trace),
        switches_(switches),
        finding_(finding),
        outcome_(outcome),
        names_(names),
        everything_(detail == TimelineDetail::Everything),
        glyphs_(glyphs),
        relevance_(everything_ ? std::vector<Relevance>(trace.operations.size(), Relevance::None)
                               : find_relevance(trace, names)),
        keep_(trace.operations.size(), everything_),
        evidence_(trace.operations.size(), false) {
    for (const KernelRun& run : trace.runs) leaving_.push_back(run.leaving);
    for (const AgentSwitch& change : switches.switches)
      if (change.at > 0 && change.at < trace.runs.size()) leaving_[change.at - 1] = change.leaving;
  }

  Timeline make() {
    mark_evidence();
    if (!everything_)
      for (size_t run = 0; run < trace_.runs.size(); ++run) choose(run);
    choose_agents();
    add_runs();
    add_end();
    return std::move(result_);
  }

 private:
  // The access or line of the console that a piece of evidence means.
  void mark_evidence() {
    for (const Evidence& evidence : finding_.verdict.evidence)
      for (size_t i = 0; i < trace_.operations.size(); ++i) {
        const KernelOperation& operation = trace_.operations[i];
        if (operation.agent != evidence.agent) continue;
        const bool there = operation.access != nullptr
                               ? operation.access->pc() == evidence.pc && operation.step == evidence.step
                               : operation.event->pc == evidence.pc && operation.event->step == evidence.step;
        if (there) evidence_[i] = keep_[i] = true;
        // Of many lines that are printed at once, the first.
        if (there && operation.event != nullptr) break;
      }
  }

  Leaving leaving(size_t run) const { return leaving_[run]; }

  // The accesses nearest to the switches, those that communicate first.
  void choose(size_t number) {
    const KernelRun& run = trace_.runs[number];
    const bool is_first = number == 0;
    const bool is_last = number + 1 == trace_.runs.size();
    struct Candidate {
      Relevance relevance;
      size_t distance;
      size_t at;
    };
    std::vector<Candidate> candidates;
    for (size_t i = run.first; i < run.end; ++i) {
      if (trace_.operations[i].event != nullptr) {
        keep_[i] = keep_[i] || is_told(trace_.operations[i]);
        continue;
      }
      if (relevance_[i] == Relevance::None) continue;
      const size_t after_start = is_first ? run.end : i - run.first;
      const size_t before_end = is_last ? run.end : run.end - i;
      candidates.push_back({relevance_[i], std::min(after_start, before_end), i});
    }
    const size_t most = std::min(candidates.size(), kRowsOfRun);
    std::ranges::partial_sort(candidates, candidates.begin() + static_cast<ptrdiff_t>(most),
                              [](const Candidate& a, const Candidate& b) {
                                if (a.relevance != b.relevance) return a.relevance > b.relevance;
                                return a.distance != b.distance ? a.distance < b.distance : a.at < b.at;
                              });
    for (size_t k = 0; k < most; ++k) keep_[candidates[k].at] = true;
    if (most > 0) interesting_.insert(run.agent);

    // What a CPU had just done when it was stopped, and what it was about to do.
    if (!is_last && unforced(leaving(number))) keep_access(run.end, run.first, true);
    if (resumed_.contains(run.agent)) keep_access(run.first, run.end, false);
    if (!is_last && unforced(leaving(number))) {
      resumed_.insert(run.agent);
    } else {
      resumed_.erase(run.agent);
    }
  }

  void keep_access(size_t from, size_t to, bool backward) {
    while (from != to) {
      const size_t i = backward ? --from : from++;
      if (trace_.operations[i].access == nullptr) continue;
      keep_[i] = true;
      return;
    }
  }

  static bool is_told(const KernelOperation& operation) {
    switch (operation.event->op) {
      case OpKind::SyscallEnter:
      case OpKind::SyscallExit:
      case OpKind::IrqEnter:
      case OpKind::Note:
      case OpKind::Fail:
        return true;
      default:
        return false;
    }
  }

  void choose_agents() {
    std::map<AgentId, uint64_t> counts;
    for (const KernelRun& run : trace_.runs) counts[run.agent] += run.end - run.first;
    for (size_t i = 0; i < trace_.operations.size(); ++i)
      if (evidence_[i]) interesting_.insert(trace_.operations[i].agent);
    for (AgentId agent : switches_.agents) {
      const bool drop = !everything_ && switches_.agents.size() > kColumns && agent.parent() &&
                        !interesting_.contains(agent);
      if (drop) {
        result_.dropped.push_back({agent, counts[agent]});
      } else {
        result_.agents.push_back(agent);
      }
    }
  }

  bool has_column(AgentId agent) const { return std::ranges::binary_search(result_.agents, agent); }

  void add_runs() {
    std::vector<size_t> shown;
    for (size_t run = 0; run < trace_.runs.size(); ++run)
      if (has_column(trace_.runs[run].agent)) shown.push_back(run);
    const bool cut = !everything_ && shown.size() > kMostRuns;
    for (size_t k = 0; k < shown.size(); ++k) {
      if (cut && k == kMostRuns / 2) {
        const size_t left_out = shown.size() - kMostRuns;
        TimelineRow row;
        row.what = TimelineRow::What::Whole;
        row.text = fmt::format("{} {}", glyphs_.ellipsis, plural(left_out, "more switch", "more switches"));
        result_.rows.push_back(std::move(row));
        k += left_out;
      }
      const bool last = k + 1 == shown.size();
      add_run(shown[k]);
      if (!last && trace_.runs[shown[k + 1]].agent != trace_.runs[shown[k]].agent)
        add_switch(shown[k], trace_.runs[shown[k + 1]].agent);
    }
  }

  void add_run(size_t number) {
    const KernelRun& run = trace_.runs[number];
    last_ = Last();
    for (size_t i = run.first; i < run.end; ++i) {
      const KernelOperation& operation = trace_.operations[i];
      const bool calls = operation.is_event(OpKind::SyscallEnter);
      if (calls) ordinals_[operation.agent].push_back(operation.event->value);
      if (operation.is_event(OpKind::SyscallExit) && keep_[i] && merge_result(operation)) continue;
      if (!keep_[i]) {
        folded_ += operation.access != nullptr;
        continue;
      }
      // A CPU looks up an interrupt's handler before it tells that the interrupt begins.
      if (!operation.is_event(OpKind::IrqEnter)) flush_fold(run.agent);
      if (operation.access != nullptr) {
        i = add_access(i, run.end);
      } else {
        add_event(i);
      }
    }
    flush_fold(run.agent);
  }

  // Returns the last operation that the row tells about.
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
    if (evidence_[i] || evidence_[last]) row.mark = TimelineRow::Mark::Evidence;
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
    if (evidence_[i]) row.mark = TimelineRow::Mark::Evidence;
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
        row.failed = evidence_[i];
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
  // "w = pwrite64(fd, ...)" -> "pwrite64"
  std::string call_name(AgentId agent) const {
    const auto calls = ordinals_.find(agent);
    if (calls == ordinals_.end()) return "system call";
    std::string text = call_text(agent);
    text = text.substr(0, text.find('('));
    const size_t equals = text.find("= ");
    return equals == std::string::npos ? text : text.substr(equals + 2);
  }

  // A call of which nothing is shown is one row.
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
  const std::vector<Relevance> relevance_;
  std::vector<bool> keep_, evidence_;
  std::vector<Leaving> leaving_;                      // by run
  std::set<AgentId> interesting_;                     // has an access of interest
  std::set<AgentId> resumed_;                         // while choosing: who was stopped and has not gone on
  std::map<AgentId, std::vector<int64_t>> ordinals_;  // the calls of each, so far
  uint64_t folded_ = 0;
  struct Last {
    std::optional<size_t> row;   // that push() made
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
  return Maker(trace, switches, finding, outcome, names, detail, glyphs).make();
}

}  // namespace slalom
