// Who called whom in a kernel's execution: a tree for each flow and interrupt, with the switches and what the
// finding is about in their places.
//
// Unless everything is wanted, only what leads to those is shown. Functions that do nothing but lead to one
// place share a line; where there is more to see, the other calls are named, or counted. Calls from before
// the recording are not known, and inlined functions are none.
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
  AgentId agent;  // of a heading; none: a line below it
  bool evidence = false;
};

std::vector<CallLine> kernel_calls(const KernelTrace& trace, const Interleaving& switches,
                                   const Finding& finding, const Outcome& outcome, const Names& names,
                                   TimelineDetail detail, const Glyphs& glyphs);

}  // namespace slalom
