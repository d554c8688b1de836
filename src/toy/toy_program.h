// ToyProgram: a small concurrent program in compiled form. A plain value that never changes once built, so
// all workers share one. ToyBuilder (toy_builder.h) or a file (toy_file.h) makes it; ToyMachine runs it.
//
// All code is one array of instructions. A block is a range of it that ends with End. An instruction is
// visible (kind != None: one step, a possible choice point) or invisible (arithmetic, jumps, assert, note).
// An operand names a register of the agent or a constant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strong.h"
#include "trace/agent.h"
#include "trace/op.h"

namespace slalom {

enum class ToyOp : uint8_t {
  // invisible
  Move,
  Add,
  Subtract,
  Multiply,
  Divide,
  Remainder,
  BitAnd,
  BitOr,
  BitXor,
  ShiftLeft,
  ShiftRight,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Not,
  Jump,
  JumpIfZero,
  JumpIfNonzero,
  Assert,
  Note,
  End,
  // visible: memory, shared or (heap) through a handle
  Load,
  Store,
  Exchange,
  FetchAdd,
  CompareExchange,
  // visible: the kind of the operation distinguishes these
  Sync,
  Spawn,
  Join,
  Yield,
  Choose,
  Alloc,
  Free,
  Mask,
  Unmask,
  Raise,
  Arm,
  Cancel,
  IrqEnter,
  TimerFire,
};

// A register of the running agent, or one of the program's constants.
struct ToyOperand {
  uint16_t raw = 0;

  static constexpr uint16_t kConstant = 0x8000;
  static constexpr ToyOperand reg(uint32_t index) { return {static_cast<uint16_t>(index)}; }
  static constexpr ToyOperand constant(uint32_t index) { return {static_cast<uint16_t>(index | kConstant)}; }
  constexpr bool is_constant() const { return (raw & kConstant) != 0; }
  constexpr uint16_t index() const { return raw & ~kConstant; }
  constexpr bool operator==(const ToyOperand&) const = default;
};

struct ToyInstruction {
  ToyOp op = ToyOp::End;
  OpKind kind = OpKind::None;
  bool heap = false;       // of a memory operation: uses the handle in `handle`
  uint16_t live = 0;       // registers from here on hold no value that is still needed
  uint16_t dest = 0;       // register
  ToyOperand index = {};   // into the array of cells or synchronisation objects
  ToyOperand x = {};       // first operand: stored, added or expected value; freed or joined handle; ...
  ToyOperand y = {};       // second operand
  ToyOperand handle = {};  // of a heap access
  uint32_t target = 0;     // first cell or object; jump target; block; text; timer; interrupt
  uint32_t count = 0;      // number of cells or objects from `target` on
};

enum class ToySyncKind : uint8_t { Mutex, RwLock, Condvar, Semaphore, Barrier };

struct ToyShared {
  std::string name = {};
  uint32_t first = 0;  // cell
  uint32_t size = 1;
  bool array = false;
  bool atomic = false;
  bool persistent = false;
  int64_t init = 0;
};

struct ToySyncObject {
  std::string name = {};
  ToySyncKind kind = ToySyncKind::Mutex;
  uint32_t first = 0;
  uint32_t size = 1;
  bool array = false;
  uint32_t count = 0;  // of a semaphore: the initial count; of a barrier: the number of parties
};

struct ToyBlock {
  enum class Kind : uint8_t { Thread, Interrupt, Timer, Final };
  Kind kind = Kind::Thread;
  std::string name = {};
  uint32_t first = 0;  // instruction
  uint32_t registers = 0;
  uint32_t copies = 1;                  // of a Thread; 0: runs only if spawned
  uint32_t pending = 0;                 // of an Interrupt: times pending at the start
  std::vector<std::string> lines = {};  // of its source, trimmed
};

// An agent that exists from the start: a copy of a started thread, or the context of an interrupt or timer.
struct ToyInitialAgent {
  AgentId id;
  uint32_t block = 0;
  int64_t copy = 0;
  std::optional<uint32_t> interrupts;  // index of the agent that it interrupts
  std::string name = {};
};

using ToyParams = std::vector<std::pair<std::string, int64_t>>;

struct ToyProgram {
  std::string name = {};
  std::string about;
  ToyParams params;
  std::vector<ToyShared> shared;
  std::vector<ToySyncObject> sync;
  std::vector<ToyBlock> blocks;
  std::vector<ToyInitialAgent> agents;

  struct Location {
    uint32_t block = 0;
    uint32_t line = 0;
  };
  std::vector<ToyInstruction> code;
  std::vector<Location> locations;  // of each instruction
  std::vector<int64_t> constants;
  std::vector<std::string> texts;

  std::optional<uint32_t> final_block;  // asserts a condition when all agents have ended
  bool expects = false;                 // false: any finding is acceptable
  std::vector<std::string> expected_kinds;
  std::vector<std::string> expected_titles;

  uint32_t cells() const;
  uint32_t sync_objects() const;
  const ToySyncObject& sync_at(uint32_t index) const;  // returns the declaration of that object
};

// Numbers of objects and places, the same in every execution. Ranges do not overlap. The number of an object
// that is created at run time depends on the agent that creates it, never on the time.
inline constexpr uint32_t kToyMaxHeapCells = 255;

inline Place toy_place(uint32_t pc) {
  return Place{pc + 1};
}
inline constexpr uint64_t kToyCells = 0x1000'0000;
inline ObjectId toy_cell(uint32_t cell) {
  return ObjectId{kToyCells + uint64_t{cell} * 8};
}
ObjectId toy_sync(uint32_t index);
ObjectId toy_interrupt(uint32_t block);
ObjectId toy_timer(uint32_t block);
ObjectId toy_agent(AgentId id);
ObjectId toy_cpu(AgentId id);
ObjectId toy_heap(AgentId allocator, uint32_t ordinal);
ObjectId toy_heap_cell(ObjectId heap, uint32_t cell);

struct ToyObjectName {
  enum class Range : uint8_t { Unknown, Cell, Sync, Interrupt, Timer, Agent, Cpu, Heap };
  Range range = Range::Unknown;
  uint32_t index = 0;            // cell, object or block; ordinal of a heap object
  AgentId agent;                 // no agent if its path was too long for the number
  std::optional<uint32_t> cell;  // of a heap object
};
ToyObjectName toy_object_name(ObjectId id);

}  // namespace slalom
