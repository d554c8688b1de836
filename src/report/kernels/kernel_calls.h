// The calls of a kernel's execution: a tree for each flow and interrupt, with the switches and the finding's
// evidence in their places.
//
// Unless the reader wants everything, the tree shows only calls that lead to those. Functions that only lead
// to one place share a line. If there is more to see, the other calls are named or counted. Calls from before
// the recording are unknown, and inlined functions do not appear.
#pragma once

#include <string>
#include <vector>

#include "finding/finding.h"
#include "report/core/timeline.h"
#include "report/kernels/kernel_trace.h"
#include "trace/names.h"
#include "trace/outcome.h"

namespace slalom {

struct CallLine {
  size_t indent = 0;
  std::string text;
  AgentId agent;  // of a heading; no agent for a line below it
  bool evidence = false;
};

std::vector<CallLine> kernel_calls(const KernelTrace& trace, const Interleaving& switches,
                                   const Finding& finding, const Outcome& outcome, const Names& names,
                                   TimelineDetail detail, const Glyphs& glyphs);

}  // namespace slalom
