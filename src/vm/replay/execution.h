// Execution: one deterministic run of a machine that a debugger drives forward, and back to checkpoints.
//
// The interface hides who decides how the machine goes on: its natural turns (vm/replay/natural_run.h) or a
// schedule that is replayed. From the same position, an execution passes through the same states, however
// forward() is called, unless someone changes the machine by hand.
#pragma once

#include <cstdint>
#include <string>

#include "vm/pc/pc.h"

namespace slalom::vm {

class Execution {
 public:
  virtual ~Execution() = default;

  virtual Pc& pc() = 0;
  // Executes at most this many instructions of all CPUs. PcStop::Budget may come early. Stops at places and
  // watched accesses as Pc::run does; the next call passes the place or access of the last stop.
  virtual PcStop forward(uint64_t instructions) = 0;

  virtual Pc::Checkpoint take() = 0;
  virtual void restore(Pc::Checkpoint id) = 0;
  virtual void drop(Pc::Checkpoint id) = 0;
  // Call this after a change of the machine by hand: the recorded future is no longer valid.
  virtual void fork() = 0;
  // What PcStop::Exit means here; empty: the guest requested it.
  virtual std::string end_sentence() const { return {}; }
};

}  // namespace slalom::vm
