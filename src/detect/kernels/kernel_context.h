// KernelContext: in what circumstances a kernel's accesses are made: who called whom, and which locks are
// held. From the calls and returns among the accesses, and from the events of locks.
//
// A stack is the aligned region that its pointer lies in, so threads and interrupts have their own; what is
// on it lives until the stack pointer has risen above it. Calls from before the recording are not known.
// Only explanations and titles use it. A value: part of a detector's state.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "detect/core/context.h"
#include "trace/access.h"
#include "trace/event.h"
#include "trace/names.h"

namespace slalom {

class KernelContext {
 public:
  struct Where {
    uint32_t path = 0;   // of calls; 0: none is known
    uint32_t locks = 0;  // a set of LockSets
  };
  Where where(AgentId agent) const;
  Where on_transfer(AgentId agent, const Access& transfer);  // a Call or Return
  void on_event(const Event& event);
  void clear();

  // The places that lead to `pc`, innermost first: `pc` itself, then the calls.
  std::vector<Place> frames(Place pc, uint32_t path) const;
  // The functions called on the way, innermost first, by their entries.
  std::vector<Place> functions(uint32_t path) const;
  // "f+0x12 <- g+0x34 <- h+0x56"
  std::string stack_text(Place pc, uint32_t path, const Names& names) const;
  // "volume, RCU"; "no lock"
  std::string locks_text(uint32_t locks, const Names& names) const;

 private:
  struct Call {
    uint32_t caller = 0;  // index + 1
    Place at, function;
    uint64_t stack = 0;  // where its return address lies
    bool operator==(const Call&) const = default;
  };
  struct Stack {
    uint32_t path = 0, locks = 0;
  };
  struct Running {
    uint64_t region = 0;
    uint32_t path = 0;  // whatever an interrupt on the same stack has left there
  };

  std::vector<Call> calls_;  // path i is calls_[i - 1] and its callers
  // Some of calls_, by a hash of their fields: most calls are made again soon, from the same place. One that
  // was forgotten is another one when it is made again, which only costs memory. Small, to stay in the
  // processor's cache.
  struct Known {
    uint32_t path = 0;  // 0: none
    uint32_t tag = 0;   // of the hash, so that others need not be looked up to be told apart
  };
  std::array<Known, 1024> known_{};

  // Apart, and last of all, so that whoever stays on its stack and calls what it has called before has
  // nothing to save on the host's.
  Where transfer_elsewhere(AgentId agent, uint64_t region, const Access& transfer);
  Where add_call(Known& known, uint32_t tag, const Call& call);
  void look_at(AgentId agent, uint64_t region);

  // Of the agent that ran last, since mostly it goes on: what the maps say about it is out of date.
  AgentId agent_;
  Running now_;
  Stack stack_;               // in now_.region
  FlatMap<Stack> stacks_;     // by region
  FlatMap<Running> running_;  // where an agent runs
  LockSets locks_;
};

// "module:func.isra.0+0x12" -> "module:func"
std::string function_name(const std::string& place);
// Does the name begin with one of these?
bool begins_with_any(std::string_view name, std::span<const std::string_view> beginnings);

}  // namespace slalom
