// The memory order of an atomic access of a program. A program's code is in no ring, so Access::ring tells it
// there; of a kernel's accesses nothing is known.
#pragma once

#include "trace/access.h"

namespace slalom {

// Weaker than sequential consistency, as the program wrote it.
inline bool is_weak(const Access& access) {
  return access.ring != 0;
}
inline void set_weak(Access& access, bool weak) {
  access.ring = weak ? 1 : 0;
}

}  // namespace slalom
