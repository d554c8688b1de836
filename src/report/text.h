// The report on a finding for a terminal: what is wrong, the timeline that shows it, the order that it needs,
// the schedule, and how to see it again. It is complete in itself, and is also kept as report.txt.
//
// A function of its arguments: no clock, no terminal, no environment. Not for machines: they read
// finding_json.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "finding/finding.h"
#include "report/core/timeline.h"
#include "trace/choice.h"
#include "trace/names.h"
#include "trace/trace_log.h"

namespace slalom {

// Why work on a finding ended early.
enum class CutShort : uint8_t { No, Interrupted, OutOfTime, LongExecutions, RaceNotAsked };

struct TextOptions {
  using Detail = TimelineDetail;

  size_t width = 100;  // of the terminal; values below 40 count as 40
  bool colour = false;
  bool ascii = false;  // no boxes, arrows and dots beyond ASCII
  Detail detail = Detail::Essential;
  std::string replay_command;            // printed as it is; empty: left out
  uint64_t executions = 0;               // of the search; 0 if unknown
  CutShort shrinking = CutShort::No;     // why shrinking ended early
  CutShort replaying = CutShort::No;     // why there were fewer replays than usual
  std::vector<std::string> differences;  // of a replay that was not the same, a sentence each
  // The state of the leaving agent at each switch of finding.schedule, from the choice points. If empty, the
  // report infers it from the log. The log is often insufficient for an agent that never ran again.
  std::vector<ChoiceKind> switch_kinds;
};

// `log`: the execution of finding.schedule.
std::string text_report(const Finding& finding, const TraceLog& log, const Names& names,
                        const TextOptions& options = {});

}  // namespace slalom
