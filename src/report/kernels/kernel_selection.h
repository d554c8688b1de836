// Selects the parts of a kernel's execution for a timeline: operations, columns, and why each run ended.
//
// It selects all evidence, system calls, and the accesses nearest to the switches, those that communicate
// first (report/kernels/kernel_relevance.h). report/kernels/kernel_timeline.h shows them.
#pragma once

#include <set>
#include <vector>

#include "finding/finding.h"
#include "report/core/timeline.h"
#include "report/kernels/kernel_trace.h"
#include "trace/names.h"

namespace slalom {

struct KernelSelection {
  std::vector<bool> keep;         // by operation
  std::vector<bool> evidence;     // by operation: part of the verdict's evidence
  std::vector<Leaving> leaving;   // by run
  std::set<AgentId> interesting;  // agents with a selected operation
};

KernelSelection select_operations(const KernelTrace& trace, const Interleaving& switches,
                                  const Finding& finding, const Names& names, TimelineDetail detail);

}  // namespace slalom
