// Facilities: the acts of a target that a detector may need, and that not every machine recognises or every
// trace has. One type for all three, so that they can be compared.
#pragma once

namespace slalom {

struct Facilities {
  // All memory accesses. Every machine reports them, but a trace of a running kernel has only chosen ones.
  bool accesses = false;
  // A kernel's locks and allocations, which a machine finds by the functions that the kernel calls. Toys and
  // programs report theirs anyway.
  bool locks = false;
  bool memory = false;

  static constexpr Facilities all() { return {true, true, true}; }
  // Returns those that are not among `others`.
  constexpr Facilities without(const Facilities& others) const {
    return {accesses && !others.accesses, locks && !others.locks, memory && !others.memory};
  }
  bool operator==(const Facilities&) const = default;
};

}  // namespace slalom
