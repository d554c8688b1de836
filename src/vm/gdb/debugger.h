// Debugger: breakpoints, watchpoints and steps over an Execution, forward and backward.
//
// Stepping or continuing never changes where the execution goes: a step of one CPU lets the others have their
// turns as ever. Going backward restores a checkpoint and executes again. A change by hand begins a new
// history: nothing can go back past it.
//
// Breakpoints are virtual addresses in whichever address space: the machine stops at every instruction with
// the same offset in its page, and goes on unless the address is right. So one can be set before anything is
// mapped there. Not for the protocol: see gdb/stub.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "vm/replay/execution.h"
#include "vm/replay/history.h"

namespace slalom::vm {

struct Watchpoint {
  enum class Kind : uint8_t { Write, Read, Access };
  Kind kind = Kind::Write;
  uint64_t first = 0, last = 0;
  auto operator<=>(const Watchpoint&) const = default;
};

struct DebugStop {
  enum class Kind : uint8_t {
    Step,         // the step is done
    Break,        // before the instruction of a breakpoint
    Watch,        // after a watched access; going backward, before it
    Interrupted,  // the user asked for it
    Begin,        // going backward: history begins here
    End,          // the guest ended, in the way that `why` says
  };
  Kind kind = Kind::Step;
  unsigned cpu = 0;
  Watchpoint watch;      // of Watch
  uint64_t address = 0;  // of Watch
  PcStop why = PcStop::Budget;
};

struct DebuggerOptions {
  uint64_t checkpoint_every = 20'000'000;  // instructions
  unsigned most_checkpoints = 40;
  uint64_t slice = 1'000'000;  // instructions between two calls of `between`
  // Called while the machine runs, also again over what has been. True: stop.
  std::function<bool()> between = [] { return false; };
};

class Debugger : TapSink {
 public:
  Debugger(Execution& execution, DebuggerOptions options);
  ~Debugger() override;  // the machine goes on unobserved from where it is
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  Pc& pc() { return execution_.pc(); }
  Position position() const { return position_; }
  Position begin() const { return history_.first(); }
  // Of the CPU's next instruction, as breakpoints count it: the code segment's base included.
  uint64_t address_of(unsigned cpu);

  std::set<uint64_t> breakpoints;
  std::set<Watchpoint> watchpoints;

  DebugStop step(unsigned cpu);
  DebugStop go();
  DebugStop step_back(unsigned cpu);
  DebugStop go_back();
  // To a place in the past, or in a future where nothing stops before. Begin and End: there is no such place.
  DebugStop seek(uint64_t executed);
  std::string end_sentence() const { return execution_.end_sentence(); }

  // After registers or memory were changed by hand.
  void changed();

 private:
  struct Hit {
    Position position;  // where going backward stops for it
    DebugStop stop;
  };

  // Until so many instructions have been executed, or something happens first.
  std::optional<DebugStop> advance_to(uint64_t executed);
  DebugStop watch_stop();
  void apply();
  void checkpoint_if_due();
  void restore(Position checkpoint);
  void go_to(Position place);  // in the past, or the present
  void go_to(uint64_t executed);
  void run_over_to(uint64_t executed);  // whatever happens on the way
  // The last one from here to that place. True: interrupted.
  bool last_hit_before(Position end, std::optional<Hit>& last);
  uint64_t retired(unsigned cpu) { return pc().cpu(cpu).regs.retired; }

  void on_batch(const Cpu&, std::span<const Access>, uint64_t) override {}
  void on_event(const Cpu&, const CpuEvent&, uint64_t) override {}

  Execution& execution_;
  DebuggerOptions options_;
  History history_;
  Tap tap_;
  std::set<uint16_t> hooked_;        // offsets in pages: those of all breakpoints there ever were
  std::vector<Watchpoint> watched_;  // as tap_.watches
  Position position_;
  std::optional<PcStop> ended_;
};

}  // namespace slalom::vm
