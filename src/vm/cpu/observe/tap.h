// Tap: records what observed CPUs do, and defines where they must stop.
//
// An observed CPU runs other blocks than an unobserved one (CodeMode::kObserved). These have hooks, which are
// ops without an instruction, at the relevant places. The accesses of an observed CPU find no TLB entry. So
// they take the slow path, which records them and compares them with the watched ranges. Only accesses to its
// own stack may be fast, if no one needs them (Cpu::check_stack). An unobserved CPU pays nothing.
//
// A machine has at most one tap. Its batch belongs to the CPU that runs. Observation changes nothing that a
// guest can see or that a state hash covers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "trace/access.h"
#include "vm/cpu/observe/function_watch.h"
#include "vm/memory/ram.h"

namespace slalom::vm {

struct Cpu;

// Ring 0's stacks: regions of one size, which is a power of two and not less than a page, aligned to it.
struct KernelStacks {
  uint64_t size = 16384;

  uint64_t base_of(uint64_t pointer) const { return pointer & ~(size - 1); }
  uint64_t end_of(uint64_t pointer) const { return base_of(pointer) + size; }
  bool are_one(uint64_t a, uint64_t b) const { return (a ^ b) < size; }
};
// Addresses of a stack that are nearer than this to its ends are treated as uncertain, since a block may move
// the stack pointer by as much.
inline constexpr uint64_t kStackMargin = 256;

// Rarer than accesses. Events are reported in order, but only between batches.
struct CpuEvent {
  enum class Kind : uint8_t {
    Interrupt,        // delivered: vector in `number`, interrupted pc in `pc`
    Exception,        // the same for a fault or trap, with its error code in `value`
    InterruptReturn,  // returns to `pc`
    SystemCall,       // number in `number`, arguments in `arguments`; from `pc`
    SystemReturn,     // result in `value`, to `pc`
    AddressSpace,     // CR3 changed to `value`
    Stack,            // the kernel switched stacks, from `number` to `value`
    Halt,
    Pause,
    // For a watched function (Tap::functions) at `pc`: the return address in `number`, the stack pointer at
    // the entry in `stack`, the arguments at the entry in `arguments`, the step of the entry in `since`.
    FunctionEntry,
    FunctionReturn,  // the same, with the result in `value`
  };
  Kind kind = Kind::Interrupt;
  uint64_t pc = 0;
  uint64_t number = 0;
  uint64_t value = 0;
  uint64_t arguments[6] = {};
  uint64_t stack = 0;
  uint64_t since = 0;
};

class TapSink {
 public:
  virtual ~TapSink() = default;
  // Accesses of one CPU. Access::retired is relative to first_step, which counts the instructions of all
  // CPUs. Calls and returns are included if the filter enables them: op() is OpKind::Call or Return, the
  // address is the target, the value is the stack pointer there.
  virtual void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) = 0;
  virtual void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) = 0;
};

struct TapFilter {
  uint8_t rings = 1 << 0 | 1 << 3;  // one bit for each privilege level
  bool accesses = true;
  bool own_stack = true;  // include ring 0's accesses to its current stack
  bool calls = false;     // calls and returns
  bool edges = false;     // coverage
  bool events = true;
  uint64_t first = 0;  // addresses from first to last, inclusive
  uint64_t last = ~uint64_t{0};
  uint64_t address_space = 0;  // the page in CR3; 0: any
  KernelStacks stacks{};

  bool observes(unsigned ring) const { return (rings >> ring) & 1; }
};

// The CPU stops before (or after) accesses to this range of virtual addresses.
struct AccessWatch {
  uint64_t first = 0, last = 0;
  bool reads = true, writes = true;
  bool after = false;
  uint64_t pc = 0;  // of the instruction; 0: any
  // Do not stop before an instruction that is a place (System::places): the CPU has stopped there already, or
  // passes it.
  bool unless_place = false;
};

struct AccessHit {
  uint32_t watch = 0;    // index in Tap::watches
  unsigned ordinal = 0;  // among the watched accesses of its instruction
  uint64_t pc = 0;
  uint64_t address = 0;
  unsigned size = 0;
  bool write = false;
};

// The control-flow edges that were taken: exact, in the order of first use, and cheap to reset.
class EdgeCoverage {
 public:
  EdgeCoverage();
  void add(uint64_t from, uint64_t to);
  void reset();
  struct Edge {
    uint64_t from, to;  // the last instruction of a block, the first of the next
    bool operator==(const Edge&) const = default;
  };
  const std::vector<Edge>& edges() const { return edges_; }
  uint64_t round() const { return round_; }  // changes with each reset

 private:
  void grow();
  std::vector<uint32_t> slots_;  // index into edges_ plus one
  std::vector<Edge> edges_;
  uint64_t round_ = 1;
};

struct Tap {
  explicit Tap(TapSink& sink, const TapFilter& filter = {});

  TapSink& sink;
  TapFilter filter;
  EdgeCoverage coverage;
  std::vector<AccessWatch> watches;
  FunctionWatch functions;  // reported if the filter enables events

  // The batch. If `next` equals `end`, flush it first.
  static constexpr unsigned kBatch = 256;  // so that it stays in the host's nearest cache
  Access* next;
  Access* end;
  uint64_t first_step = 0;
  const Cpu* owner = nullptr;  // the CPU of the batch
  uint64_t base_step = 0;      // instructions of all CPUs before the running slice

  void flush();
  void make_room(const Cpu& cpu, uint64_t step);  // for an access of instruction `step`
  // Removes the accesses of instruction `step`, which will run again.
  void take_back(const Cpu& cpu, uint64_t step);
  // `executed`: instructions of this slice.
  void event(const Cpu& cpu, const CpuEvent& event, uint64_t executed);

 private:
  std::unique_ptr<Access[]> batch_;
};

}  // namespace slalom::vm
