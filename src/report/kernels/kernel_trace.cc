#include "report/kernels/kernel_trace.h"

#include <algorithm>
#include <set>

namespace slalom {
namespace {

// Infers from the log why a run ended. Choice points know it better.
Leaving guess(const KernelTrace& trace, size_t run) {
  const KernelRun& here = trace.runs[run];
  if (run + 1 == trace.runs.size()) return Leaving::Unknown;
  const KernelRun& next = trace.runs[run + 1];
  const bool interrupt = static_cast<bool>(here.agent.parent());
  if (interrupt && next.agent == here.agent.parent()) return Leaving::Ended;
  if (next.agent.parent() == here.agent) return Leaving::Interrupted;
  for (size_t later = run + 1; later < trace.runs.size(); ++later) {
    if (trace.runs[later].agent != here.agent) continue;
    const KernelOperation& resumed = trace.operations[trace.runs[later].first];
    return interrupt && resumed.is_event(OpKind::IrqEnter) ? Leaving::Ended : Leaving::Preempted;
  }
  // The agent never ran again. The return of a flow's last call shows that the flow has ended.
  for (size_t i = here.end; i-- > here.first;) {
    const KernelOperation& operation = trace.operations[i];
    if (operation.is_event(OpKind::SyscallExit)) return Leaving::Ended;
    if (operation.is_event(OpKind::SyscallEnter)) break;
  }
  return interrupt ? Leaving::Ended : Leaving::Unknown;
}

}  // namespace

bool KernelOperation::writes() const {
  if (access == nullptr) return false;
  return may_only_read(access->op())
             ? access->wrote != 0
             : access->wrote != 0 || access->op() == OpKind::Store || access->op() == OpKind::AtomicStore;
}

const Access* KernelTrace::next_access(size_t run) const {
  for (size_t later = run + 1; later < runs.size(); ++later) {
    if (runs[later].agent != runs[run].agent) continue;
    for (size_t i = runs[later].first; i < runs[later].end; ++i)
      if (operations[i].access != nullptr) return operations[i].access;
  }
  return nullptr;
}

bool is_of_kernel(const Event& event) {
  return event.op == OpKind::SyscallEnter || event.op == OpKind::SyscallExit;
}

bool is_kernel_trace(const TraceLog& log) {
  return std::ranges::any_of(log.events(), is_of_kernel);
}

KernelTrace read_kernel_trace(const TraceLog& log) {
  KernelTrace trace;
  trace.operations.reserve(log.accesses().size() + log.events().size());
  Step last;
  const auto add = [&](Step step, AgentId agent, const Access* access, const Event* event) {
    // Events carry the count at which their CPU began to run, which may be less than that of its accesses.
    last = std::max(last, step);
    if (!agent && !trace.runs.empty()) agent = trace.runs.back().agent;  // the event has no agent
    trace.operations.push_back({last, agent, access, event});
    if (trace.runs.empty() || trace.runs.back().agent != agent)
      trace.runs.push_back({agent, trace.operations.size() - 1, 0});
    trace.runs.back().end = trace.operations.size();
  };
  for (const TraceLog::Entry& entry : log.order()) {
    if (entry.what == TraceLog::Entry::What::Event) {
      const Event& event = log.events()[entry.index];
      add(event.step, event.agent, nullptr, &event);
      continue;
    }
    const TraceLog::Batch& batch = log.batches()[entry.index];
    for (uint64_t i = 0; i < batch.count; ++i) {
      const Access& access = log.accesses()[batch.first + i];
      add(Step{batch.header.first_step.raw + access.retired}, batch.header.agent, &access, nullptr);
    }
  }
  for (size_t run = 0; run < trace.runs.size(); ++run) trace.runs[run].leaving = guess(trace, run);
  return trace;
}

std::vector<bool> evidence_operations(const KernelTrace& trace, const Verdict& verdict) {
  std::vector<bool> meant(trace.operations.size(), false);
  for (const Evidence& evidence : verdict.evidence)
    for (size_t i = 0; i < trace.operations.size(); ++i) {
      const KernelOperation& operation = trace.operations[i];
      if (operation.agent != evidence.agent) continue;
      const bool there = operation.access != nullptr
                             ? operation.access->pc() == evidence.pc && operation.step == evidence.step
                             : operation.event->pc == evidence.pc && operation.event->step == evidence.step;
      if (there) meant[i] = true;
      // If many lines are printed at once, only the first is meant.
      if (there && operation.event != nullptr) break;
    }
  return meant;
}

Interleaving kernel_switches(const KernelTrace& trace, const Schedule& schedule) {
  Interleaving result;
  std::set<AgentId> agents;
  for (const KernelRun& run : trace.runs)
    if (run.agent) agents.insert(run.agent);
  result.agents.assign(agents.begin(), agents.end());

  const auto& switches = schedule.switches;
  std::vector<size_t> at(switches.size(), trace.runs.size());
  size_t next = 0;
  for (size_t run = 0; run < trace.runs.size(); ++run) {
    const AgentId agent = trace.runs[run].agent;
    // A CPU that goes on after an interrupt does so without a decision.
    const bool returns = run > 0 && trace.runs[run - 1].agent.parent() == agent;
    if (returns && (next == switches.size() || switches[next].to != agent)) continue;
    while (next < switches.size() && switches[next].to != agent) ++next;
    if (next == switches.size()) return result;
    at[next++] = run;
  }
  for (size_t i = 1; i < switches.size(); ++i) {
    const bool known = at[i] < trace.runs.size() && at[i] > 0;
    result.switches.push_back({at[i], switches[i].from, switches[i].from_ops, switches[i].to,
                               known ? trace.runs[at[i] - 1].leaving : Leaving::Unknown, ""});
  }
  return result;
}

}  // namespace slalom
