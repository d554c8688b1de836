// KernelTrace: a kernel's execution, flat, with the runs between its switches. What the parts of a kernel's
// report look at; made once.
//
// A kernel's agents are CPUs and the interrupts on them, and their operations are instructions: only those
// that touch memory are in the log, so counts are the schedule's, never the log's. Programs and toys have
// report/core/interleaving.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/core/interleaving.h"
#include "trace/schedule.h"
#include "trace/trace_log.h"
#include "trace/verdict.h"

namespace slalom {

// Points into the log, which must outlive it. Either an access or an event.
struct KernelOperation {
  Step step;  // never less than the one before
  AgentId agent;
  const Access* access = nullptr;
  const Event* event = nullptr;

  bool writes() const;  // an access
  bool is_event(OpKind kind) const { return event != nullptr && event->op == kind; }
};

// What one agent does without another in between.
struct KernelRun {
  AgentId agent;
  size_t first = 0;
  size_t end = 0;
  Leaving leaving = Leaving::Unknown;  // why it ended; of the last one: nothing
};

struct KernelTrace {
  std::vector<KernelOperation> operations;
  std::vector<KernelRun> runs;

  // Where that agent goes on after a run: its next access, if it makes one.
  const Access* next_access(size_t run) const;
};

// Are there system calls in it?
bool is_kernel_trace(const TraceLog& log);
KernelTrace read_kernel_trace(const TraceLog& log);

// Which of the operations the evidence of a verdict means.
std::vector<bool> evidence_operations(const KernelTrace& trace, const Verdict& verdict);

// The schedule's switches and the trace's agents, without operations: `at` is the number of the run. Without
// `at` (there is no run: nothing was recorded in it), it is the number of all runs. Empty switches: the log
// is of another schedule.
Interleaving kernel_switches(const KernelTrace& trace, const Schedule& schedule);

}  // namespace slalom
