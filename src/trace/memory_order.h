// The facts that only a program's accesses carry: whether an atomic access has a weak memory order, and
// whether the value of a plain store is known. Rings mean nothing for programs, so Access::ring holds these
// facts.
#pragma once

#include "trace/access.h"

namespace slalom {

inline constexpr uint64_t kWeakOrder = 1, kUnknownValue = 2;  // values of Access::ring

// Returns whether the program asked for an order weaker than sequential consistency.
inline bool is_weak(const Access& access) {
  return access.ring == kWeakOrder;
}
inline void set_weak(Access& access, bool weak) {
  access.ring = weak ? kWeakOrder : 0;
}

// The machine sees a plain store before the program makes it, so Access::value may be the old value. Most
// stores of executions whose trace is kept have the right value (Reporting::keeps_values).
inline bool knows_value(const Access& access) {
  return access.op() != OpKind::Store || access.ring != kUnknownValue;
}
inline void set_unknown_value(Access& access) {
  access.ring = kUnknownValue;
}

}  // namespace slalom
