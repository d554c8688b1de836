// What of a kernel's execution a timeline shows: which operations, whose columns, and why each run ended.
//
// All evidence, system calls, and of the accesses those nearest to the switches, those that communicate first
// (report/kernels/kernel_relevance.h). How they are shown is report/kernels/kernel_timeline.h's.
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
  std::vector<bool> evidence;     // by operation: the verdict's
  std::vector<Leaving> leaving;   // by run
  std::set<AgentId> interesting;  // has something that is shown
};

KernelSelection select_operations(const KernelTrace& trace, const Interleaving& switches,
                                  const Finding& finding, const Names& names, TimelineDetail detail);

}  // namespace slalom
