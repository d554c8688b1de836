// KernelContext: the circumstances of a kernel's accesses: the chain of calls, and the locks held. It uses
// the calls and returns among the accesses, and the events of locks.
//
// Stacks and the ends of calls are those of trace/call_stacks.h. This class numbers chains of calls, since
// every access that a detector keeps refers to one. Only explanations and titles use the context. A value:
// part of a detector's state.
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
    uint32_t path = 0;   // of calls; 0 if none is known
    uint32_t locks = 0;  // a set of LockSets
  };
  Where where(AgentId agent) const;
  Where on_transfer(AgentId agent, const Access& transfer);  // `transfer` is a Call or a Return
  void on_event(const Event& event);
  void clear();

  // Returns the places that lead to `pc`, innermost first: `pc` itself, then the calls.
  std::vector<Place> frames(Place pc, uint32_t path) const;
  // Returns the entries of the functions called on the way, innermost first.
  std::vector<Place> functions(uint32_t path) const;
  // "f+0x12 <- g+0x34 <- h+0x56"
  std::string stack_text(Place pc, uint32_t path, const Names& names) const;
  // "volume, RCU"; "no lock"
  std::string locks_text(uint32_t locks, const Names& names) const;

 private:
  struct Call {
    uint32_t caller = 0;  // index + 1
    Place at, function;
    uint64_t stack = 0;  // address of its return address
    bool operator==(const Call&) const = default;
  };
  struct Stack {
    uint32_t path = 0, locks = 0;
  };
  struct Running {
    uint64_t region = 0;
    uint32_t path = 0;  // may also hold what an interrupt on the same stack left there
  };

  std::vector<Call> calls_;  // path i is calls_[i - 1] and its callers
  // Cache of calls_ by a hash of their fields: most calls are soon repeated from the same place. A call that
  // was evicted gets a new number when it is repeated, which only costs memory. The cache is small, to stay
  // in the processor's cache.
  struct Known {
    uint32_t path = 0;  // 0 if empty
    uint32_t tag = 0;   // of the hash, to reject other calls without reading calls_
  };
  std::array<Known, 1024> known_{};

  // Slow path of on_transfer(), a separate tail call. The fast path, for an agent that stays on its stack and
  // repeats a known call, then saves no registers on the host's stack.
  Where transfer_elsewhere(AgentId agent, uint64_t region, const Access& transfer);
  Where add_call(Known& known, uint32_t tag, const Call& call);
  void look_at(AgentId agent, uint64_t region);

  // State of the agent that ran last, because mostly the same agent goes on. The maps are out of date for it.
  AgentId agent_;
  Running now_;
  Stack stack_;               // of now_.region
  FlatMap<Stack> stacks_;     // by region
  FlatMap<Running> running_;  // by agent: where it runs
  LockSets locks_;
};

// "module:func.isra.0+0x12" -> "module:func"
std::string function_name(const std::string& place);
// Returns whether the name begins with one of `beginnings`.
bool begins_with_any(std::string_view name, std::span<const std::string_view> beginnings);

}  // namespace slalom
