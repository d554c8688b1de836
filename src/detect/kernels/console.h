// ConsoleDetector: turns what the kernel under test reports about itself (oopses, BUG, WARNING, lockdep,
// KASAN, lockups, damaged file systems) into verdicts. For the forms of reports see
// detect/kernels/console_report.h.
//
// The detector keeps only lines of reports, up to a limit. Every other line costs only one check, so a chatty
// guest costs little. Not for judging how an execution ended: a kernel that dies silently reports nothing
// here.
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
  uint32_t wanted = 0;  // further lines that belong to the last report

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
