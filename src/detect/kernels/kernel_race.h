// KernelRaceDetector: data races of a kernel, from its accesses alone. A race is two accesses by different
// CPUs to the same bytes of physical memory, at least one a write, that nothing orders.
//
// The detector knows no lock by name. Bytes that a LOCKed instruction or an XCHG accesses become a
// synchronisation variable: from then on, every read of them acquires and every write releases, plain ones
// included (an unlock is a plain store), and they never race. All such bytes of one cell of eight share a
// clock. A CPU and the interrupts on it count as one (program order). The machine does not report the sender
// of an interrupt. An interrupt with a vector of 0xf0 and above, where Linux has its IPIs, is ordered after
// everything that the last other CPU did.
//
// So the detector misses an order that Linux makes with plain loads and stores alone (smp_store_release,
// RCU): check such reports with care. It also sees an order where there is none, and misses a race, if two
// variables lie in one cell or an IPI came from another CPU.
//
// Simultaneous races are a subset, which DataCollider and SKI (section 5.5) find: while one CPU stood before
// its access, without another access of its own in between, the other CPU made its access.
//
// Clocks, cells and records are those of detect/programs/race.h (FastTrack, but keeping every access that is
// concurrent with later ones), so the detector knows for every access whether it races with an earlier one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/clocks.h"
#include "detect/core/detector.h"
#include "detect/kernels/kernel_context.h"

namespace slalom {

struct KernelRaceOptions {
  enum class Mode : uint8_t { HappensBefore, Simultaneous };
  Mode mode = Mode::HappensBefore;
  // Ignore races of functions whose names begin with one of these.
  std::vector<std::string> ignore = kernel_internals();

  static std::vector<std::string> kernel_internals();  // scheduler, time, RCU, printk, allocator
};

// Decides by the names of functions which races to ignore. The same races come in every execution, so it
// caches its results by place.
class KernelInternals {
 public:
  KernelInternals(const Names& names, std::vector<std::string> ignore)
      : names_(names), ignore_(std::move(ignore)) {}
  bool is_ignored(Place pc);
  bool is_subsystem(Place function);  // everything that the function calls belongs to it
  // Returns whether an access at `pc`, below these functions, to this address, is the kernel's own business.
  bool is_internal(Place pc, std::span<const Place> functions, ObjectId address);

 private:
  const Names& names_;
  std::vector<std::string> ignore_;
  FlatMap<uint8_t> ignored_, subsystems_;  // by place: 1 no, 2 yes
};

struct KernelRaceState {
  // An access to some bytes of one cell. Packed by hand: see RaceState::Record.
  struct Record {
    uint64_t what = 0;  // bytes 8 bits, write 1, cpu 7, agent 16, clock 32
    Place pc;
    Step step;
    uint64_t value = 0;
    ObjectId address;            // virtual address of the whole access
    KernelContext::Where where;  // circumstances, for reports only
    uint32_t size = 0;           // of the whole access
    uint32_t next = 0;           // in the cell's list or the free list; 0 ends it

    static uint64_t pack(uint64_t writes, uint64_t cpu, uint64_t agent, uint64_t clock) {
      return writes << 8 | cpu << 9 | agent << 16 | clock << 32;
    }
    uint8_t bytes() const { return static_cast<uint8_t>(what); }  // bit i: byte i of the cell
    bool writes() const { return (what >> 8 & 1) != 0; }
    uint8_t cpu() const { return what >> 9 & 0x7f; }
    uint16_t agent() const { return static_cast<uint16_t>(what >> 16); }  // index into agents
    uint32_t clock() const { return static_cast<uint32_t>(what >> 32); }  // the CPU's own clock at the access
  };
  static_assert(sizeof(Record) == 56);

  struct Cell {
    uint32_t first = 0;  // record, or 0
    uint32_t clock = 0;  // row of what was released here, or 0
    uint8_t sync = 0;    // bytes that a locked operation has accessed
    // Owner of the other bytes: the only CPU that has accessed them, plus one. 0 if none has; kShared if
    // several have.
    uint8_t owner = 0;
    static constexpr uint8_t kShared = 0xff;
  };
  struct Agent {
    AgentId id;
    uint8_t cpu = 0;
  };
  struct Latest {
    uint64_t now = 0;     // step of the CPU's latest access, plus one
    uint64_t before = 0;  // the same for the latest access by an earlier instruction
  };
  struct Cpu {
    AgentId id;
    uint32_t clock = 0;  // its row
    Latest latest;
  };
  struct Race {
    uint64_t cell = 0;
    Record first, second;
    uint8_t bytes = 0;          // bytes of the cell for which they ever raced
    bool simultaneous = false;  // at least once
  };

  FlatMap<uint32_t> agent_index;  // by agent id: index + 1
  std::vector<Agent> agents;
  std::vector<Cpu> cpus;
  ClockTable clocks;
  KernelContext context;
  uint8_t running = 0;                                   // the CPU of the latest accesses
  uint8_t other = 0;                                     // the last CPU that ran before it
  FlatMap<Cell, 2> cells;                                // by physical address / 8
  std::vector<Record> records = std::vector<Record>(1);  // the first is unused, because 0 means none
  uint32_t free_record = 0;
  FlatMap<uint32_t> race_index;  // by places and cell: index + 1
  std::vector<Race> races;

  void clear();
};

class KernelRaceDetector final : public StatefulDetector<KernelRaceState> {
 public:
  explicit KernelRaceDetector(const Names& names, KernelRaceOptions options = {})
      : StatefulDetector(names), mode_(options.mode), internals_(names, std::move(options.ignore)) {}
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

  // Returns all pairs so far, before any is ignored or grouped. Leaves out bytes that became synchronisation
  // variables.
  std::vector<KernelRaceState::Race> races() const;

 private:
  using Record = KernelRaceState::Record;
  using Cell = KernelRaceState::Cell;
  using Cpu = KernelRaceState::Cpu;

  uint32_t agent_of(AgentId id);
  uint8_t cpu_of(AgentId id);
  void access(const Access& access, uint64_t step, uint32_t agent, uint8_t index, KernelContext::Where where);
  void access_cells(const Access& access, uint8_t index, bool locked, const Record& record);
  void touch_cell(uint64_t key, uint8_t bytes, uint8_t index, bool locked, Record record);
  void touch(Cell& cell, uint64_t key, const uint32_t* now, Record record);
  void found(uint64_t key, Record first, Record second);
  KernelRaceState::Latest latest_at(const Cpu& cpu, size_t count) const;
  void acquire(const Cpu& cpu, uint32_t row);
  void release(uint8_t cpu, uint32_t row);

  KernelRaceOptions::Mode mode_;
  KernelInternals internals_;
  // The batch in progress, and the current access in it.
  std::span<const Access> batch_;
  const Access* current_ = nullptr;
  Step first_step_;
};

}  // namespace slalom
