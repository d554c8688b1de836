// The report on a finding for a terminal: what is wrong, the timeline that shows it, the order it needs, the
// schedule, and how to see it again. Complete in itself: it is also what is kept as report.txt.
//
// A function of its arguments: no clock, no terminal, no environment. Not for machines: finding_json.h is.
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

// Why less was done with a finding than could have been.
enum class CutShort : uint8_t { No, Interrupted, OutOfTime, LongExecutions, RaceNotAsked };

struct TextOptions {
  using Detail = TimelineDetail;

  size_t width = 100;  // of the terminal; less than 40 counts as 40
  bool colour = false;
  bool ascii = false;  // no boxes, arrows and dots beyond ASCII
  Detail detail = Detail::Essential;
  std::string replay_command;            // printed as it is; empty: left out
  uint64_t executions = 0;               // of the search; 0: not known
  CutShort shrinking = CutShort::No;     // it was not shrunk to the end
  CutShort replaying = CutShort::No;     // it was not replayed as often as others
  std::vector<std::string> differences;  // of a replay that was not the same, a sentence each
  // How the agent stood at each switch of finding.schedule, as its choice points said. Left empty, it is
  // worked out from the log as far as that goes: of an agent that never ran again it often cannot be told.
  std::vector<ChoiceKind> switch_kinds;
};

// `log`: the execution of finding.schedule.
std::string text_report(const Finding& finding, const TraceLog& log, const Names& names,
                        const TextOptions& options = {});

}  // namespace slalom
