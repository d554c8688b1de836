// The timeline of a report: which rows of an interleaving to show (timeline.cc), and their layout with one
// column per agent (timeline_layout.cc).
//
// Selection does not depend on widths and colours, nor layout on findings. Everything left out is counted in
// a Fold row or in Timeline::dropped, so a reader never believes that nothing else happened.
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
    Cell,    // an operation of an agent
    Pause,   // an operation that an agent cannot do yet, or a fold of its operations
    Switch,  // from `agent` to `to`, unforced
    Whole,   // over all columns: a fold of several agents
    Ending,  // over all columns: how the execution ended
  };
  enum class Mark : uint8_t { None, Point, Evidence };

  What what = What::Cell;
  AgentId agent;
  AgentId to;
  std::optional<Step> step;
  Mark mark = Mark::None;
  bool failed = false;
  bool wraps = false;  // a long text is wrapped, not cut
  std::string text;
  std::string note;
};

struct Timeline {
  std::vector<TimelineRow> rows;
  std::vector<AgentId> agents;  // agents with a column
  // Agents without one, with the number of their operations.
  std::vector<std::pair<AgentId, uint64_t>> dropped;
};

enum class TimelineDetail : uint8_t {
  Essential,  // evidence, the surroundings of switches, and conflicts; other operations are folded
  Everything,
};

Timeline make_timeline(const Interleaving& all, const Finding& finding, const Outcome& outcome,
                       const Names& names, TimelineDetail detail, const Glyphs& glyphs);

struct LayoutOptions {
  size_t width = 100;
  Style style;
  bool ascii = false;
};
// Returns columns side by side if each gets a readable width, else one line per row with the agent's name.
std::string lay_out(const Timeline& timeline, const Names& names, const LayoutOptions& options);

// Returns the colour of an agent, the same in the whole report.
Ink agent_ink(const std::vector<AgentId>& agents, AgentId agent);

}  // namespace slalom
