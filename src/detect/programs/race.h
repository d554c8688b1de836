// RaceDetector: data races by happens-before. A data race is two accesses to the same bytes by two agents, at
// least one a write and at least one plain, that no chain of synchronisation orders.
//
// The detector uses vector clocks, with epochs for accesses (Flanagan and Freund, FastTrack, PLDI 2009).
// Deviation: a cell keeps every access that is concurrent with later ones, not only the last write. It drops
// an access only for a later one that is ordered after it and conflicts with everything that it conflicts
// with. So the detector knows for *every* access whether it races with an earlier one, also after the first
// race.
//
// These are ordered: unlock -> lock (readers do not order each other), post -> wait, wake, spawn, exit ->
// join, arrival -> departure at a barrier, arming -> firing, raising -> handling, an atomic write -> later
// atomic accesses to the same address (all treated as sequentially consistent). An interrupt handler and the
// code that it interrupts never overlap, but that does not order them. Only masking does, like a lock of the
// cpu.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/clocks.h"
#include "detect/core/context.h"
#include "detect/core/detector.h"

namespace slalom {

struct RaceState {
  // The kind of an access, as bits. A kind with more bits conflicts with more accesses.
  static constexpr uint8_t kWrites = 1;
  static constexpr uint8_t kPlain = 2;

  // An access to some bytes of one cell. Packed by hand, because the compiler keeps no bit fields in
  // registers.
  struct Record {
    uint64_t what = 0;  // bytes 8 bits, kind 2, operation 6, agent 16, clock 32
    Place pc;
    Step step;
    uint32_t context = 0;
    uint32_t next = 0;  // in the cell's list, or in the free list; 0 ends it

    static uint64_t pack(OpKind op, uint64_t kind, uint64_t agent, uint64_t clock) {
      return kind << 8 | static_cast<uint64_t>(op) << 10 | agent << 16 | clock << 32;
    }
    uint8_t bytes() const { return static_cast<uint8_t>(what); }  // bit i: byte i of the cell
    uint8_t kind() const { return what >> 8 & 3; }
    OpKind op() const { return static_cast<OpKind>(what >> 10 & 0x3f); }
    uint16_t agent() const { return static_cast<uint16_t>(what >> 16); }  // index into agents
    // The agent's own clock at the access.
    uint32_t clock() const { return static_cast<uint32_t>(what >> 32); }
  };
  static_assert(sizeof(Record) == 32);

  struct Agent {
    AgentId id;
    uint32_t clock = 0;  // its row
    uint32_t wakes = 0;  // row of the operation that raised or armed it and awaits its next run, or 0
    OpKind previous = OpKind::None;  // its last event other than a Wake
    Context now;
    uint32_t context = 0;  // the number of `now`, or 0 if not known
  };

  struct Race {
    ObjectId object;
    Record first;
    Record second;
    uint64_t title = 0;  // hash of the title
  };

  FlatMap<uint32_t> agent_index;  // by agent id: index + 1
  std::vector<Agent> agents;
  ClockTable clocks;
  FlatMap<uint32_t> released;       // by synchronisation object: row of everything released into it
  FlatMap<uint32_t> read_released;  // by reader-writer lock: the same for readers
  FlatMap<uint32_t> atomics;        // by address: row of the atomic writes
  LockSets locks;
  ContextTable contexts;
  FlatMap<uint32_t, 3> cells;                            // by address / 8: the first record, or 0
  std::vector<Record> records = std::vector<Record>(1);  // the first is unused, because 0 means none
  uint32_t free_record = 0;
  FlatMap<uint8_t> reported;  // pairs already examined, by places, kinds and cell
  std::vector<Race> races;

  void clear();
};

class RaceDetector final : public StatefulDetector<RaceState> {
 public:
  using StatefulDetector::StatefulDetector;
  bool wants_accesses() const override { return true; }
  void on_accesses(std::span<const Access> accesses, const BatchHeader& header) override;
  void on_event(const Event& event) override;
  void on_end(const Outcome& outcome) override;

 private:
  using Record = RaceState::Record;
  using Agent = RaceState::Agent;

  uint32_t index_of(AgentId agent);
  void access(const Access& access, Step step, uint32_t agent);
  void touch(uint64_t cell, const uint32_t* now, Record record);
  void forget(ObjectId object, uint64_t size);

  void acquire(uint32_t agent, const FlatMap<uint32_t>& rows, uint64_t key);
  void release(uint32_t agent, FlatMap<uint32_t>& rows, uint64_t key);
  void release_into(uint32_t agent, uint32_t& row);
  void hold(uint32_t agent, ObjectId lock);
  void let_go(uint32_t agent, ObjectId lock);
  // Applies the event to the clocks. Returns false if it is no synchronisation.
  bool synchronise(const Event& event, uint32_t agent);

  void found(uint64_t cell, Record first, Record second);
  std::string title(ObjectId object, const Record& first, const Record& second) const;
  std::string held(const Record& record) const;
  std::string last_sync(const Record& record) const;
  Evidence evidence(const Record& record, ObjectId object) const;
};

}  // namespace slalom
