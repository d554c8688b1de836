// What an access of a program says besides what those of a kernel say, too: the memory order of an atomic
// one, and whether the value of a plain store is known. A program's code is in no ring, so Access::ring holds
// it.
#pragma once

#include "trace/access.h"

namespace slalom {

inline constexpr uint64_t kWeakOrder = 1, kUnknownValue = 2;  // in Access::ring

// Weaker than sequential consistency, as the program wrote it.
inline bool is_weak(const Access& access) {
  return access.ring == kWeakOrder;
}
inline void set_weak(Access& access, bool weak) {
  access.ring = weak ? kWeakOrder : 0;
}

// A plain store is seen before it is made, so Access::value may be what was there before. Executions whose
// trace is kept know better, mostly (Inputs::keeps_values).
inline bool knows_value(const Access& access) {
  return access.op() != OpKind::Store || access.ring != kUnknownValue;
}
inline void set_unknown_value(Access& access) {
  access.ring = kUnknownValue;
}

}  // namespace slalom
