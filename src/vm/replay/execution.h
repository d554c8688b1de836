// Execution: what a debugger drives: one deterministic run of a machine, forward and back to checkpoints.
//
// Who decides how the machine goes on is behind this interface: its natural turns (gdb/natural_run.h), or a
// schedule that is being replayed. The promise: from the same place, the same states come, however forward()
// is called, as long as nobody changes the machine by hand.
#pragma once

#include <cstdint>
#include <string>

#include "vm/pc/pc.h"

namespace slalom::vm {

class Execution {
 public:
  virtual ~Execution() = default;

  virtual Pc& pc() = 0;
  // Goes on for at most so many instructions of all CPUs; PcStop::Budget may come early. Stops at places and
  // watched accesses as Pc::run does, and passes what it stopped at when called again.
  virtual PcStop forward(uint64_t instructions) = 0;

  virtual Pc::Checkpoint take() = 0;
  virtual void restore(Pc::Checkpoint id) = 0;
  virtual void drop(Pc::Checkpoint id) = 0;
  // The machine was changed by hand: what was known of the future does not hold any more.
  virtual void fork() = 0;
  // What a PcStop::Exit means here; empty: the guest asked for it.
  virtual std::string end_sentence() const { return {}; }
};

}  // namespace slalom::vm
