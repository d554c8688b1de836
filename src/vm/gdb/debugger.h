// Debugger: breakpoints, watchpoints and steps over an Execution, forward and backward.
//
// Stepping and continuing never change the execution: during a step of one CPU, the others have their turns
// as usual. To go backward, it restores a checkpoint and executes again. A change by hand begins a new
// history, and the debugger cannot go back past it.
//
// Breakpoints are virtual addresses in any address space. The machine stops at every instruction with the
// same offset in its page, and goes on unless the address matches. So a breakpoint can be set before its page
// is mapped. The debugger knows nothing of gdb's protocol: see gdb/stub.h.
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
    Interrupted,  // the user requested it
    Begin,        // going backward: reached the beginning of history
    End,          // the guest ended; see `why`
  };
  Kind kind = Kind::Step;
  unsigned cpu = 0;
  Watchpoint watch;      // for Watch
  uint64_t address = 0;  // for Watch
  PcStop why = PcStop::Budget;
};

struct DebuggerOptions {
  uint64_t checkpoint_every = 20'000'000;  // instructions
  unsigned most_checkpoints = 40;
  uint64_t slice = 1'000'000;  // instructions between two calls of `between`
  // Called while the machine runs, also when it executes the past again. Return true to stop.
  std::function<bool()> between = [] { return false; };
};

class Debugger : TapSink {
 public:
  Debugger(Execution& execution, DebuggerOptions options);
  ~Debugger() override;  // the machine goes on unobserved from where it is
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  Pc& pc() { return execution_.pc(); }
  HistoryPoint position() const { return position_; }
  HistoryPoint begin() const { return history_.first(); }
  // The address of the CPU's next instruction, including the code segment's base, as breakpoints count it.
  uint64_t address_of(unsigned cpu);

  std::set<uint64_t> breakpoints;
  std::set<Watchpoint> watchpoints;

  DebugStop step(unsigned cpu);
  DebugStop go();
  DebugStop step_back(unsigned cpu);
  DebugStop go_back();
  // Goes to a position in the past, or in the future if nothing stops before. Returns Begin or End if there
  // is no such position.
  DebugStop seek(uint64_t executed);
  std::string end_sentence() const { return execution_.end_sentence(); }

  // Call this after a change of registers or memory by hand.
  void changed();

 private:
  struct Hit {
    HistoryPoint position;  // where going backward stops for this hit
    DebugStop stop;
  };

  // Runs until this many instructions have been executed, or until an earlier stop.
  std::optional<DebugStop> advance_to(uint64_t executed);
  DebugStop watch_stop();
  void apply();
  void checkpoint_if_due();
  void restore(HistoryPoint checkpoint);
  void go_to(HistoryPoint place);  // in the past or present
  void go_to(uint64_t executed);
  void run_over_to(uint64_t executed);  // ignores stops on the way
  // Finds the last hit from here to `end`. Returns true if the user interrupted.
  bool last_hit_before(HistoryPoint end, std::optional<Hit>& last);
  uint64_t retired(unsigned cpu) { return pc().cpu(cpu).regs.retired; }

  void on_batch(const Cpu&, std::span<const Access>, uint64_t) override {}
  void on_event(const Cpu&, const CpuEvent&, uint64_t) override {}

  Execution& execution_;
  DebuggerOptions options_;
  History history_;
  Tap tap_;
  std::set<uint16_t> hooked_;        // page offsets of all breakpoints that were ever set
  std::vector<Watchpoint> watched_;  // same as tap_.watches
  HistoryPoint position_;
  std::optional<PcStop> ended_;
};

}  // namespace slalom::vm
