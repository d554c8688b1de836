// Communication: finds the memory that several contexts of an execution accessed, at least one of them
// writing, and the instructions that accessed it (SKI, section 4).
//
// A context is a CPU, or the interrupts that have interrupted it. Memory that a CPU shares only with its own
// interrupts makes points only in some code (set_interruptible). In the whole kernel it would make most of
// the points, because single instructions or disabled interrupts guard per-CPU data.
//
// Memory is tracked in granules of eight bytes, by physical address. Accesses to different bytes of one
// granule count as communication: this adds points but misses none.
//
// Teaches the same as learn/communication.h, which a test compares with it. It is faster, because it knows
// the size of RAM and the contexts' numbers, and the Journal shares its work.
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
  void add(unsigned context, std::span<const Access> accesses);  // in the order of execution
  void clear();
  // Granules that several contexts used, at least one writing, in the order in which they became shared.
  const std::vector<uint64_t>& shared() const { return state_.shared; }
  static uint64_t first_granule(const Access& access) { return access.physical % kReach / 8; }
  static uint64_t last_granule(const Access& access) {
    return (access.physical % kReach + access.size - 1) / 8;
  }

  static bool is_in_one_granule(const Access& access) { return access.physical % 8 + access.size <= 8; }

  // Returns true if different CPUs communicate there.
  bool is_used_by_cpus(uint64_t granule) const;

  // Code in which memory that a CPU shares with its own interrupts makes points, too.
  void set_interruptible(CodeRange code) { interruptible_ = code; }
  bool is_interruptible(Place pc) const { return interruptible_.has(pc); }

  // Makes the instructions of these accesses points, if contexts communicate there by the end.
  void add_instructions(std::span<const Access> accesses);
  void add_point(Place pc) { state_.points.push_back(pc); }
  std::vector<Place> points() const;  // sorted

  // For checkpoints.
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
  // Bits: one for each context that has read the granule, then one for each that has written it, then the
  // round.
  using Cell = uint64_t;
  static constexpr unsigned kContexts = 2 * kMostCpus;
  static_assert(2 * kContexts <= 32);
  static constexpr uint64_t kPageCells = 512;
  static constexpr uint64_t kReach = uint64_t{1} << 36;  // more than the size of RAM
  using Page = std::array<Cell, kPageCells>;

  Cell& cell(uint64_t granule);
  uint32_t users(uint64_t granule) const;
  void use(Cell& cell, uint64_t granule, Cell bit);
  [[gnu::noinline]] void begin_use(Cell& cell, uint64_t granule, Cell bit);

  // By page of memory. Cells of earlier rounds are ignored, so clear() need not reset them.
  std::vector<Page*> pages_;
  Arena arena_;
  uint32_t round_ = 1;
  CodeRange interruptible_;
  State state_;  // in `used`, only the granules are kept up to date
  // Recently added instructions, by hash: most are soon added again. A forgotten entry is only added twice,
  // which does no harm.
  std::array<uint32_t, 4096> noted_{};
  bool has_noted_ = false;
};

}  // namespace slalom::vm
