// Scope: the part of a kernel whose accesses a search orders. The search treats everything else as atomic: it
// does not switch there, and differences there do not make two executions different.
//
// Scopes are dynamic. Functions that a function of the scope calls belong to it, too (locks, lists, copies),
// except those that are ignored (see find_scope() of the guest). Interrupts do not belong to it, unless their
// handlers are functions of the scope. Detectors do not use scopes: they see every access.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "base/strong.h"
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

struct CodeRange {
  uint64_t begin = 0, end = 0;
  bool has(Place place) const { return place.raw >= begin && place.raw < end; }
};
void remove_places_in(std::span<const CodeRange> code, std::vector<Place>& places);  // both are sorted

}  // namespace slalom::vm
