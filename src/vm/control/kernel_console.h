// KernelConsole: reads the console of a kernel under test line by line. It emits the lines, and recognises
// those by which a kernel reports its own death.
#pragma once

#include <cstdint>
#include <string>

#include "vm/control/kernel_events.h"

namespace slalom::vm {

class KernelConsole {
 public:
  KernelConsole(Pc& pc, KernelEvents& events, const GuestTraits& guest)
      : pc_(pc), events_(events), guest_(guest) {}

  struct State {
    std::string line;       // the unfinished line
    unsigned speaker = 0;   // the CPU that wrote to the console last
    bool dying = false;     // the kernel has begun to report its death
    bool traced = false;    // the report includes the call trace
    bool reported = false;  // the report is complete
  };
  void begin();  // a new execution
  const State& save() const { return state_; }
  void restore(const State& state);

  bool dying() const { return state_.dying; }
  bool traced() const { return state_.traced; }
  bool reported() const { return state_.reported; }
  unsigned speaker() const { return state_.speaker; }
  void set_speaker(unsigned cpu) { state_.speaker = cpu; }
  void read();         // what was written since the last call
  void finish_line();  // at the end of an execution

 private:
  void on_line(const std::string& line);

  Pc& pc_;
  KernelEvents& events_;
  const GuestTraits& guest_;
  State state_;
};

}  // namespace slalom::vm
