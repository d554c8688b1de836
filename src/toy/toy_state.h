// ToyState: everything of a toy program's execution that a checkpoint saves and restores. A plain value of
// flat vectors of plain structs, so a copy is a few memcpys. Agents are identified by their index, in order
// of creation. Data that the target can observe uses AgentId instead, see hash().
#pragma once

#include <cstdint>
#include <vector>

#include "base/strong.h"
#include "toy/toy_program.h"
#include "trace/agent.h"
#include "trace/choice.h"

namespace slalom {

inline constexpr uint32_t kNoToyIndex = UINT32_MAX;

struct ToyAgent {
  enum class Status : uint8_t {
    Idle,       // the context of an interrupt or timer that does not run now
    Ready,      // stands before its next visible operation
    Waiting,    // waits on a condition variable
    AtBarrier,  // has arrived, waits for the others
    Ended,
  };

  AgentId id;
  uint64_t ops = 0;  // visible operations retired
  uint32_t block = 0;
  uint32_t pc = 0;
  uint32_t frame = 0;  // its first register
  uint32_t spawned = 0;
  uint32_t allocated = 0;
  uint32_t waits_on = kNoToyIndex;    // synchronisation object, while Waiting or AtBarrier
  uint32_t interrupts = kNoToyIndex;  // of an interrupt's context: the agent that it interrupts
  uint32_t pending = 0;  // of an interrupt: times pending; of a timer: its state, as in trace/op.h
  Status status = Status::Ready;
  uint8_t cpu = 0;             // as in trace/op.h
  bool interruptible = false;  // an interrupt can interrupt it
  bool enabled = false;        // derived; ToyCore keeps it up to date

  bool operator==(const ToyAgent&) const = default;
};

struct ToySync {
  uint32_t count = 0;            // semaphore: its count; rwlock: readers; barrier: arrived agents
  uint32_t owner = kNoToyIndex;  // of a mutex or a write-locked rwlock: the agent

  bool operator==(const ToySync&) const = default;
};

struct ToyReadHold {
  uint32_t sync = 0;
  uint32_t agent = 0;
  bool operator==(const ToyReadHold&) const = default;
};

struct ToyHeapObject {
  ObjectId id;
  uint32_t first = 0;  // index into heap_cells
  uint32_t size = 0;
  bool live = true;
  bool operator==(const ToyHeapObject&) const = default;
};

struct ToyState {
  std::vector<int64_t> cells;
  std::vector<int64_t> registers;  // of all agents
  std::vector<ToyAgent> agents;
  std::vector<uint32_t> order;  // agents ordered by AgentId
  std::vector<ToySync> sync;
  std::vector<ToyReadHold> read_holds;
  std::vector<ToyHeapObject> heap;  // ordered by id
  std::vector<int64_t> heap_cells;

  uint64_t steps = 0;       // visible operations retired
  uint64_t idle_steps = 0;  // steps counted for long runs of invisible instructions
  uint64_t enabled_hash = 0;
  uint32_t enabled_count = 0;
  uint32_t current = kNoToyIndex;  // the agent that ran last
  ChoiceKind kind = ChoiceKind::Start;
  uint32_t arity = 0;  // not 0: the current agent's operation asks for a value

  bool operator==(const ToyState&) const = default;
  uint64_t hash(const ToyProgram& program) const;  // of everything that the target can observe
};

}  // namespace slalom
