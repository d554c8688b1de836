// KernelTrace: a kernel's execution as a flat list, with the runs between its switches. It is made once, and
// used by all parts of a kernel's report.
//
// A kernel's agents are CPUs and the interrupts on them; their operations are instructions. The log holds
// only instructions that touch memory, so counts come from the schedule, never from the log. Programs and
// toys use report/core/interleaving.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/core/interleaving.h"
#include "trace/schedule.h"
#include "trace/trace_log.h"
#include "trace/verdict.h"

namespace slalom {

// An access or an event. Points into the log, which must outlive it.
struct KernelOperation {
  Step step;  // never less than the previous operation's
  AgentId agent;
  const Access* access = nullptr;
  const Event* event = nullptr;

  bool writes() const;  // whether it is an access that writes
  bool is_event(OpKind kind) const { return event != nullptr && event->op == kind; }
};

// Consecutive operations of one agent.
struct KernelRun {
  AgentId agent;
  size_t first = 0;
  size_t end = 0;
  Leaving leaving = Leaving::Unknown;  // why it ended; meaningless for the last run
};

struct KernelTrace {
  std::vector<KernelOperation> operations;
  std::vector<KernelRun> runs;

  // Returns the agent's next access after a run; nullptr if it makes none.
  const Access* next_access(size_t run) const;
};

// Returns whether the log has system calls.
bool is_of_kernel(const Event& event);  // only the traces of kernels have such events
bool is_kernel_trace(const TraceLog& log);
KernelTrace read_kernel_trace(const TraceLog& log);

// Returns for each operation whether a verdict's evidence means it.
std::vector<bool> evidence_operations(const KernelTrace& trace, const Verdict& verdict);

// Returns the schedule's switches and the trace's agents, without operations. `at` is the number of the run;
// if nothing was recorded in the run, it is the number of runs. Without switches, the log belongs to another
// schedule.
Interleaving kernel_switches(const KernelTrace& trace, const Schedule& schedule);

}  // namespace slalom
