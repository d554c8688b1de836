// ConsoleDetector: what the kernel under test says is wrong with it (oopses, BUG, WARNING, lockdep, KASAN,
// lockups, file systems that find themselves damaged) becomes verdicts. What a report looks like:
// detect/kernels/console_report.h.
//
// Only lines of reports are kept, and of each so many: a chatty guest costs one look at each line. Not for
// judging how an execution ended: a kernel that dies silently says nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include "detect/core/detector.h"

namespace slalom {

struct ConsoleState {
  struct Line {
    uint32_t begin = 0;  // in text
    uint32_t size = 0;
    Step step;
    AgentId agent;
    Place pc;
  };
  std::vector<char> text;
  std::vector<Line> lines;
  uint32_t wanted = 0;  // lines that still belong to the report that began last

  void clear() {
    text.clear();
    lines.clear();
    wanted = 0;
  }
};

class ConsoleDetector final : public StatefulDetector<ConsoleState> {
 public:
  using StatefulDetector::StatefulDetector;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;
};

}  // namespace slalom
