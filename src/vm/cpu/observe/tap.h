// Tap: what observed CPUs leave behind, and where they must stop.
//
// An observed CPU runs other blocks than an unobserved one (CodeMode::kObserved): they have hooks, ops that
// are no instructions, before what matters. Its accesses find no TLB entry and so take the slow way, where
// they are recorded and compared with the watched ranges; only those to its own stack may be fast, if nobody
// wants them (Cpu::look_at_stack). An unobserved CPU pays for none of it.
//
// One machine has at most one tap; its batch belongs to whichever CPU runs. Observing changes nothing that a
// guest or a state hash could see.
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

// Ring 0's stacks are as large and as aligned as this, on every kernel that slalom knows.
inline constexpr uint64_t kKernelStack = 16384;
// What of one is nearer than this to its ends is not taken for granted, since a block may move the stack
// pointer by so much.
inline constexpr uint64_t kStackMargin = 256;

// Rarer than accesses. In the order in which things happened, but told only between batches.
struct CpuEvent {
  enum class Kind : uint8_t {
    Interrupt,        // delivered: vector in `number`, the interrupted pc in `pc`
    Exception,        // the same for a fault or trap, with its error code in `value`
    InterruptReturn,  // back to `pc`
    SystemCall,       // number in `number`, arguments in `arguments`; from `pc`
    SystemReturn,     // result in `value`, to `pc`
    AddressSpace,     // CR3 is `value` now
    Stack,            // the kernel switched stacks: from `number` to `value`
    Halt,
    Pause,
    // Of a watched function (Tap::functions), which is `pc`: the return address in `number`, the stack
    // pointer at the entry in `stack`, the arguments at the entry in `arguments`, the entry's step in
    // `since`.
    FunctionEntry,
    FunctionReturn,  // with its result in `value`
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
  // Accesses of one CPU; Access::retired counts from first_step, which counts instructions of all CPUs. Calls
  // and returns are among them if the filter asks for them: op() is OpKind::Call or Return, the address is
  // where it goes, the value the stack pointer there.
  virtual void on_batch(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step) = 0;
  virtual void on_event(const Cpu& cpu, const CpuEvent& event, uint64_t step) = 0;
};

struct TapFilter {
  uint8_t rings = 1 << 0 | 1 << 3;  // of privilege levels: a bit each
  bool accesses = true;
  bool own_stack = true;  // ring 0's accesses to the stack it runs on
  bool calls = false;     // calls and returns
  bool edges = false;     // coverage
  bool events = true;
  uint64_t first = 0;  // addresses first .. last
  uint64_t last = ~uint64_t{0};
  uint64_t address_space = 0;  // CR3's page; 0: any

  bool observes(unsigned ring) const { return (rings >> ring) & 1; }
};

// A range of virtual addresses before (or after) whose accesses the CPU stops.
struct AccessWatch {
  uint64_t first = 0, last = 0;
  bool reads = true, writes = true;
  bool after = false;
};

struct AccessHit {
  uint32_t watch = 0;    // index
  unsigned ordinal = 0;  // among the watched accesses of its instruction
  uint64_t pc = 0;
  uint64_t address = 0;
  unsigned size = 0;
  bool write = false;
};

// The edges of the control flow that were taken: exact, in the order of first use, cheap to reset.
class Coverage {
 public:
  Coverage();
  void add(uint64_t from, uint64_t to);
  void reset();
  struct Edge {
    uint64_t from, to;  // the last byte's instruction of a block, the first of the next
    bool operator==(const Edge&) const = default;
  };
  const std::vector<Edge>& edges() const { return edges_; }
  uint64_t round() const { return round_; }  // another one after each reset

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
  Coverage coverage;
  std::vector<AccessWatch> watches;
  FunctionWatch functions;  // told if the filter asks for events

  // The batch. `next` == `end`: it must be flushed first.
  static constexpr unsigned kBatch = 256;  // so that it stays in the host's nearest cache
  Access* next;
  Access* end;
  uint64_t first_step = 0;
  const Cpu* owner = nullptr;  // of the batch
  uint64_t base_step = 0;      // instructions of all CPUs before the running slice

  void flush();
  void make_room(const Cpu& cpu, uint64_t step);                         // for an access of that instruction
  void take_back(const Cpu& cpu, uint64_t step);                         // its accesses: it will run again
  void event(const Cpu& cpu, const CpuEvent& event, uint64_t executed);  // instructions of this slice

 private:
  std::unique_ptr<Access[]> batch_;
};

}  // namespace slalom::vm
