// Scope: the part of a kernel whose accesses a search orders. To the search everything else is atomic: no
// switch happens there, and nothing there makes two executions different.
//
// It is dynamic: what functions of the scope call is in it, too (their locks, lists and copies), up to what
// is ignored by name: scheduler, timekeeping, RCU, allocators, printk. Interrupts are not, unless their
// handlers are functions of the scope. Not for detectors: these see every access.
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

  // Does the innermost function of the scope, or to be ignored, that was entered and has not returned belong
  // to the scope? Looks at a stack from its pointer up to where it ends.
  bool is_inside(const FunctionWatch::Open& open, uint64_t pointer, uint64_t end) const;

 private:
  FlatMap<uint8_t> entries_;  // 1: to be ignored
};

// "module:abba", "function:pipe_read", "function:pipe_*".
bool is_scope(std::string_view text);
inline constexpr std::string_view kScopeAdvice =
    "a scope is \"module:NAME\", \"function:NAME\" or \"function:BEGINNING*\"";
// Fails where a name is nobody's.
Result<Scope> find_scope(const SymbolTable& symbols, std::span<const std::string> wanted);

// Where, without a scope, a search does not switch unless it is asked to: in the scheduler and in
// timekeeping. CPUs look at each other's queues and clocks all the time, under locks of their own, which are
// choice points all the same; accesses under them would be most of all choice points, and tell nothing about
// a test.
struct CodeRange {
  uint64_t begin = 0, end = 0;
  bool has(Place place) const { return place.raw >= begin && place.raw < end; }
};
std::vector<CodeRange> scheduling_code(const SymbolTable& symbols);  // sorted
// All modules that are loaded: drivers, which share memory with their own interrupts and timers.
CodeRange module_code(const SymbolTable& symbols);
void remove_places_in(std::span<const CodeRange> code, std::vector<Place>& places);  // both are sorted

}  // namespace slalom::vm
