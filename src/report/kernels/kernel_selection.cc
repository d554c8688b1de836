#include "report/kernels/kernel_selection.h"

#include <algorithm>
#include <map>

#include "report/kernels/kernel_relevance.h"

namespace slalom {
namespace {

constexpr size_t kRowsOfRun = 12;  // accesses shown between two switches
constexpr size_t kFewRows = 6;     // the same if the evidence already says most

class Selector {
 public:
  Selector(const KernelTrace& trace, const Interleaving& switches, const Finding& finding,
           std::vector<Relevance> relevance)
      : trace_(trace), finding_(finding), relevance_(std::move(relevance)) {
    selection_.evidence = evidence_operations(trace, finding.verdict);
    selection_.keep = selection_.evidence;
    for (const KernelRun& run : trace.runs) selection_.leaving.push_back(run.leaving);
    for (const AgentSwitch& change : switches.switches)
      if (change.at > 0 && change.at < trace.runs.size()) selection_.leaving[change.at - 1] = change.leaving;
    for (size_t i = 0; i < trace.operations.size(); ++i)
      if (selection_.evidence[i]) selection_.interesting.insert(trace.operations[i].agent);
  }

  KernelSelection everything() {
    selection_.keep.assign(trace_.operations.size(), true);
    return std::move(selection_);
  }

  KernelSelection what_matters() {
    if (has_its_places()) {
      find_quiet();
      find_settled();
    }
    for (size_t run = 0; run < trace_.runs.size(); ++run) choose(run);
    return std::move(selection_);
  }

 private:
  Leaving leaving(size_t run) const { return selection_.leaving[run]; }

  // Returns whether the evidence holds the places of the bug. A kernel's own report only has the place where
  // the kernel noticed it.
  bool has_its_places() const {
    switch (finding_.verdict.kind) {
      case BugKind::DataRace:
      case BugKind::WeakMemory:
      case BugKind::UseAfterFree:
      case BugKind::DoubleFree:
      case BugKind::Deadlock:
        return std::ranges::find(selection_.evidence, true) != selection_.evidence.end();
      default:
        return false;
    }
  }

  // Finds system calls without evidence and without a switch. Each of them gets one row.
  void find_quiet() {
    struct Call {
      std::vector<size_t> operations;
      bool begun = false, matters = false;
    };
    std::map<AgentId, Call> calls;
    for (size_t number = 0; number < trace_.runs.size(); ++number) {
      const KernelRun& run = trace_.runs[number];
      Call& call = calls[run.agent];
      for (size_t i = run.first; i < run.end; ++i) {
        const KernelOperation& operation = trace_.operations[i];
        if (operation.is_event(OpKind::SyscallEnter)) call = {.operations = {}, .begun = true};
        call.operations.push_back(i);
        call.matters |= selection_.evidence[i];
        if (!operation.is_event(OpKind::SyscallExit)) continue;
        if (call.begun && !call.matters)
          for (const size_t quiet : call.operations) relevance_[quiet] = Relevance::None;
        call = {};
      }
      call.matters |= number + 1 < trace_.runs.size() && unforced(leaving(number));
    }
  }

  // Finds the run in which a deadlock is complete: one turn after the last decision and the last evidence.
  // From there on, the waiting agents only wait.
  void find_settled() {
    if (finding_.verdict.kind != BugKind::Deadlock) return;
    size_t last = 0;
    for (size_t number = 0; number < trace_.runs.size(); ++number) {
      const KernelRun& run = trace_.runs[number];
      for (size_t i = run.first; i < run.end; ++i)
        if (selection_.evidence[i]) last = number;
      if (number + 1 < trace_.runs.size() && unforced(leaving(number))) last = number + 1;
    }
    settled_ = last + 1;
  }

  // Selects the accesses nearest to the switches, those that communicate first.
  void choose(size_t number) {
    if (number > settled_) return;
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
        selection_.keep[i] = selection_.keep[i] || is_told(trace_.operations[i]);
        continue;
      }
      if (relevance_[i] == Relevance::None) continue;
      const size_t after_start = is_first ? run.end : i - run.first;
      const size_t before_end = is_last ? run.end : run.end - i;
      candidates.push_back({relevance_[i], std::min(after_start, before_end), i});
    }
    const size_t most = std::min(candidates.size(), has_its_places() ? kFewRows : kRowsOfRun);
    std::ranges::partial_sort(candidates, candidates.begin() + static_cast<ptrdiff_t>(most),
                              [](const Candidate& a, const Candidate& b) {
                                if (a.relevance != b.relevance) return a.relevance > b.relevance;
                                return a.distance != b.distance ? a.distance < b.distance : a.at < b.at;
                              });
    for (size_t k = 0; k < most; ++k) selection_.keep[candidates[k].at] = true;
    if (most > 0) selection_.interesting.insert(run.agent);

    // Show what a CPU had just done when it was stopped, and what it was about to do.
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
      selection_.keep[i] = true;
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

  const KernelTrace& trace_;
  const Finding& finding_;
  std::vector<Relevance> relevance_;
  KernelSelection selection_;
  std::set<AgentId> resumed_;  // during selection: agents that were stopped and have not gone on
  size_t settled_ = SIZE_MAX;  // after that run, the CPUs of a deadlock only wait
};

}  // namespace

KernelSelection select_operations(const KernelTrace& trace, const Interleaving& switches,
                                  const Finding& finding, const Names& names, TimelineDetail detail) {
  if (detail == TimelineDetail::Everything) return Selector(trace, switches, finding, {}).everything();
  return Selector(trace, switches, finding, find_relevance(trace, names)).what_matters();
}

}  // namespace slalom
