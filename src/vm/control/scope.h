// Scope: the part of a kernel whose accesses a search orders. The search treats everything else as atomic: it
// does not switch there, and differences there do not make two executions different.
//
// Scopes are dynamic. Functions that a function of the scope calls belong to it, too (locks, lists, copies),
// except those that are ignored by name: scheduler, timekeeping, RCU, allocators, printk. Interrupts do not
// belong to it, unless their handlers are functions of the scope. Detectors do not use scopes: they see every
// access.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "base/result.h"
#include "base/strong.h"
#include "symbols/symbol_table.h"
#include "vm/cpu/observe/function_watch.h"

namespace slalom::vm {

class Scope {
 public:
  void add(uint64_t entry, bool ignored) { entries_[entry] = ignored ? 1 : 2; }
  bool empty() const { return entries_.empty(); }
  void watch(FunctionWatch& watch) const;

  // Finds the innermost open call of a function that is in the scope or ignored, on the stack from `pointer`
  // to `end`. Returns true if that function is in the scope; false if there is none.
  bool is_inside(const FunctionWatch::Open& open, uint64_t pointer, uint64_t end) const;

 private:
  FlatMap<uint8_t> entries_;  // by entry: 1 ignored, 2 in the scope
};

// "module:abba", "function:pipe_read", "function:pipe_*".
bool is_scope(std::string_view text);
inline constexpr std::string_view kScopeAdvice =
    "a scope is \"module:NAME\", \"function:NAME\" or \"function:BEGINNING*\"";
// Fails if a name matches nothing.
Result<Scope> find_scope(const SymbolTable& symbols, std::span<const std::string> wanted);

// Without a scope, a search does not switch in the scheduler and in timekeeping unless the user asks for it.
// CPUs look at each other's queues and clocks all the time, under locks of their own. These locks are choice
// points all the same, but the accesses under them would be most of all choice points and tell nothing about
// a test.
struct CodeRange {
  uint64_t begin = 0, end = 0;
  bool has(Place place) const { return place.raw >= begin && place.raw < end; }
};
std::vector<CodeRange> scheduling_code(const SymbolTable& symbols);  // sorted
// The code of all loaded modules: drivers share memory with their own interrupts and timers.
CodeRange module_code(const SymbolTable& symbols);
void remove_places_in(std::span<const CodeRange> code, std::vector<Place>& places);  // both are sorted

}  // namespace slalom::vm
