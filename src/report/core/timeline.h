// The timeline of a report: which rows of an interleaving are worth showing (timeline.cc), and how they are
// laid out, one column per agent (timeline_layout.cc).
//
// Selection knows nothing of widths and colours, layout nothing of findings. Whatever is left out is counted
// in a Fold row or in Timeline::dropped: a reader is never led to believe that nothing else happened.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "finding/finding.h"
#include "report/core/interleaving.h"
#include "report/core/summary.h"

namespace slalom {

struct TimelineRow {
  enum class What : uint8_t {
    Cell,    // something an agent does
    Pause,   // what an agent cannot do yet, or a fold of its operations
    Switch,  // from `agent` to `to`, unforced
    Whole,   // over all columns: a fold of several agents
    Ending,  // over all columns: how it ended
  };
  enum class Mark : uint8_t { None, Point, Evidence };

  What what = What::Cell;
  AgentId agent;
  AgentId to;
  std::optional<Step> step;
  Mark mark = Mark::None;
  bool failed = false;
  bool wraps = false;  // a long text is broken, not cut
  std::string text;
  std::string note;
};

struct Timeline {
  std::vector<TimelineRow> rows;
  std::vector<AgentId> agents;                        // who has a column
  std::vector<std::pair<AgentId, uint64_t>> dropped;  // who has none, with the number of its operations
};

enum class TimelineDetail : uint8_t {
  Essential,  // evidence, what surrounds a switch, what agents conflict on; the rest is folded
  Everything,
};

Timeline make_timeline(const Interleaving& all, const Finding& finding, const Outcome& outcome,
                       const Names& names, TimelineDetail detail, const Glyphs& glyphs);

struct LayoutOptions {
  size_t width = 100;
  Style style;
  bool ascii = false;
};
// Columns side by side where each gets a readable width, else one line per row with the agent's name.
std::string lay_out(const Timeline& timeline, const Names& names, const LayoutOptions& options);

// The colour of an agent, the same all over a report.
Ink agent_ink(const std::vector<AgentId>& agents, AgentId agent);

}  // namespace slalom
