// KernelInterruptedDetector: updates that lose what an interrupt wrote. Code reads some bytes, an interrupt
// on the same CPU writes them, and the code then stores a value there that it computed from the old one.
//
// kernel-race treats a CPU and the interrupts on it as one: no interrupt can split a single instruction, and
// much of a kernel relies on that. An interrupt can come between two instructions unless interrupts are off.
// So this detector reports only what really happened in this order: a load, a store by an interrupt, a plain
// store, with no other load by the same code in between. Two places belong to the same piece of code if the
// function of one is still among the callers of the other. A thread that gets the CPU later is another piece
// of code.
#pragma once

#include <cstdint>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/detector.h"
#include "detect/kernels/kernel_context.h"
#include "detect/kernels/kernel_race.h"

namespace slalom {

struct KernelInterruptedState {
  struct Moment {
    AgentId agent;
    Place pc;
    Step step;
    ObjectId address;
    uint64_t value = 0;
    KernelContext::Where where;
  };
  struct Cell {
    uint8_t read = 0;  // bytes of eight that `reader` has read since it last stored there
    uint8_t lost = 0;  // of these, bytes that an interrupt has written since
    Moment reader, writer;
  };
  struct Update {
    Moment read, interrupt, store;
  };

  KernelContext context;
  FlatMap<uint32_t> cpus;   // by id of an interrupt's context: its CPU + 1
  FlatMap<uint32_t> index;  // by physical address / 8: index of a cell + 1
  std::vector<Cell> cells;
  std::vector<Update> updates;

  void clear();
};

class KernelInterruptedDetector final : public StatefulDetector<KernelInterruptedState> {
 public:
  explicit KernelInterruptedDetector(const Names& names)
      : StatefulDetector(names), internals_(names, KernelRaceOptions::kernel_internals()) {}
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  using Moment = KernelInterruptedState::Moment;

  void touch(uint64_t key, uint8_t bytes, const Access& access, const Moment& now);
  bool of_one_piece(const Moment& read, const Moment& store) const;

  KernelInternals internals_;
};

}  // namespace slalom
