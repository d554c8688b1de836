// What is known of the operating system in a machine: GuestTraits, values that never change, and GuestModel,
// which derives the system's own events from those of its CPUs.
//
// Control of a machine (vm/control) knows a guest through these two only. It works without either:
// explanations then lack locks and memory, and the end of a dying kernel is not recognised by what it prints.
// The implementations are in vm/guests/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "vm/cpu/observe/function_watch.h"
#include "vm/cpu/observe/tap.h"

namespace slalom::vm {

// All text matches as a part of a line, or as the beginning of a place ("schedule_timeout+0x12").
struct GuestTraits {
  struct Range {
    uint64_t first = 0, last = 0;  // inclusive
    bool has(uint64_t address) const { return address >= first && address <= last; }
  };

  uint64_t first_kernel_address = 0xffff'8000'0000'0000;  // programs have their memory below it
  Range code{~uint64_t{0}, 0};                            // of the kernel and its modules; empty if unknown
  Range entry_stacks{~uint64_t{0}, 0};  // used on the way into the kernel by all threads of a CPU
  KernelStacks stacks{};
  uint8_t timer_vector = 0;    // of a CPU's own timer; 0 if unknown
  unsigned first_ipi = 0x100;  // vectors from here on are sent by CPUs; 0x100: none
  // Lines on the console: the kernel has failed; it prints where; it has printed everything.
  std::span<const std::string_view> failed{}, traced{}, reported{};
  std::span<const std::string_view> reported_by_check{};  // likewise, of the check after the flows
  std::span<const std::string_view> waiting_functions{};  // beginnings of functions that implement waiting
  std::span<const std::string_view> timed_waits{};        // functions that a waiting thread's timer calls
};

struct GuestTask {
  uint64_t address = 0;  // of the kernel's own structure; 0 if unknown
  uint32_t pid = 0;
  std::string comm;

  std::string text() const;  // "sh/42"; "?" if unknown
  bool operator==(const GuestTask&) const = default;
};

struct GuestEvent {
  // As detectors and trace files expect it. `pc` is the place that called the kernel's function. `text` is
  // additional information for people: the function or cache, the call with its arguments, the new task.
  //   locks         the object is the lock; for RCU read sections, the task
  //   Alloc, Free   the object is the memory, `value` its size (0: unknown), `text` its cache or else the
  //                 function; Alloc: `state` 1 for pages, also those for slabs; Free: `state` 1 if
  //                 readers may still access the memory (SLAB_TYPESAFE_BY_RCU)
  //   SyscallEnter  `value` is the number;    SyscallExit  `value` is the result, the object the number
  //   IrqEnter      `value` is the vector, exceptions included; the object is the CPU
  //   ThreadSwitch  the object is the task, `value` its pid
  //   Call, Return  the object is the function, `value` its first argument or its result
  //   Fail, Note    a panic or oops, a warning
  Event event;
  unsigned cpu = 0;
  const GuestTask& task;                  // the task that did it
  std::string_view function;              // the kernel's function, if known
  std::span<const uint64_t> arguments{};  // of the system call or function
  uint64_t stack = 0;                     // the stack pointer, for a backtrace
};

class GuestSink {
 public:
  virtual ~GuestSink() = default;
  virtual void on_guest_event(const Cpu& cpu, const GuestEvent& event) = 0;
  virtual void on_guest_accesses(const Cpu& cpu, std::span<const Access> accesses, uint64_t first_step,
                                 const GuestTask& task) = 0;
};

struct GuestModelOptions {
  bool locks = false;
  bool memory = false;
  bool pages = false;  // allocations of the page allocator, like those of memory
  bool system_calls = false;
  bool interrupts = false;
  bool tasks = false;
  bool panics = false;
  bool backtraces = false;          // needs a record for each call and return
  std::vector<uint64_t> functions;  // entries of functions whose calls and returns are emitted
  // Accesses to these addresses (first to last, inclusive) are emitted. Every access of the machine then
  // takes the slow path.
  struct Range {
    uint64_t first = 0, last = 0;
  };
  std::vector<Range> accesses;
};

// Stands between a tap and a GuestSink. It does not change the machine, and its output is a function of what
// the tap reports. A caller that restores another state of the machine must also restore the model's state
// and the open calls of the tap's functions, since both remember what has begun.
class GuestModel : public TapSink {
 public:
  virtual void watch(Tap& tap) const = 0;  // adds the functions that the model needs

  // What a function was called for that takes or gives back a lock.
  struct LockCall {
    uint64_t lock = 0;
    bool acquires = false;
  };
  virtual std::optional<LockCall> lock_call(const FunctionWatch::Frame& frame) const = 0;

  // What the model remembers at a moment, for checkpoints.
  class Saved {
   public:
    virtual ~Saved() = default;
  };
  virtual std::unique_ptr<const Saved> save() const = 0;
  virtual void restore(const Saved* saved) = 0;  // nullptr: nothing has begun
};

// Makes a model of the guest in a machine. The sink must outlive it.
using MakeGuestModel = std::function<std::unique_ptr<GuestModel>(const GuestModelOptions&, GuestSink&)>;

}  // namespace slalom::vm
