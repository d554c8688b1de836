// Communication: which instructions of an execution accessed memory that another context accessed too, at
// least one of the two writing (SKI, section 4); and which memory that is.
//
// A context is a CPU, or the interrupts that have interrupted it. What a CPU shares with its own interrupts
// alone makes points in some code only: all over a kernel it would make most of them, per-CPU data that
// single instructions or disabled interrupts guard.
//
// Memory is looked at in granules of eight bytes, by physical address: neighbours in one granule count as
// communicating, which makes too many points but misses none.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/strong.h"
#include "trace/access.h"
#include "vm/control/scope.h"
#include "vm/devices/interrupts/interrupts.h"
#include "vm/memory/arena.h"

namespace slalom::vm {

// A context: a CPU, or the interrupts that have interrupted it.
inline unsigned context_of(unsigned cpu, bool interrupt) {
  return cpu + (interrupt ? kMostCpus : 0);
}

class Communication {
 public:
  void add(unsigned context, std::span<const Access> accesses);  // they are made
  void clear();
  // The memory that several contexts used, at least one writing, in the order in which it became so.
  const std::vector<uint64_t>& shared() const { return state_.shared; }
  static uint64_t first_granule(const Access& access) { return access.physical % kReach / 8; }
  static uint64_t last_granule(const Access& access) {
    return (access.physical % kReach + access.size - 1) / 8;
  }

  static bool is_in_one_granule(const Access& access) { return access.physical % 8 + access.size <= 8; }

  // Do CPUs communicate there?
  bool is_used_by_cpus(uint64_t granule) const;

  // Code in which what a CPU shares with its own interrupts makes points, too.
  void set_interruptible(CodeRange code) { interruptible_ = code; }
  bool is_interruptible(Place pc) const { return interruptible_.has(pc); }

  // Their instructions are points, if contexts turn out to communicate there.
  void add_instructions(std::span<const Access> accesses);
  void add_point(Place pc) { state_.points.push_back(pc); }
  std::vector<Place> points() const;  // sorted

  // Checkpoints.
  struct State {
    struct Used {
      uint64_t granule;
      uint32_t users;
    };
    std::vector<Used> used;
    std::vector<uint64_t> shared;
    struct Instruction {
      uint64_t pc, granule;
    };
    std::vector<Instruction> instructions;
    std::vector<Place> points;
  };
  State save() const;
  void restore(const State& state);

 private:
  // A bit for each context that has read it, and one for each that has written it; above them the round.
  using Cell = uint64_t;
  static constexpr unsigned kContexts = 2 * kMostCpus;
  static_assert(2 * kContexts <= 32);
  static constexpr uint64_t kPageCells = 512;
  static constexpr uint64_t kReach = uint64_t{1} << 36;  // more than RAM can have
  using Page = std::array<Cell, kPageCells>;

  Cell& cell(uint64_t granule);
  uint32_t users(uint64_t granule) const;
  void use(Cell& cell, uint64_t granule, Cell bit);
  [[gnu::noinline]] void begin_use(Cell& cell, uint64_t granule, Cell bit);

  // By page of memory. Cells of earlier rounds count for nothing, so that there is nothing to clear.
  std::vector<Page*> pages_;
  Arena arena_;
  uint32_t round_ = 1;
  CodeRange interruptible_;
  State state_;  // of `used` the granules only
  // What was noted last, by a hash: mostly the same is done again soon. What it has forgotten is noted twice,
  // which does no harm.
  std::array<uint32_t, 4096> noted_{};
  bool has_noted_ = false;
};

}  // namespace slalom::vm
