// Selects the instantiation of a handler by the size of its operand.
#pragma once

#include <cstdint>

#include "vm/cpu/op.h"

namespace slalom::vm {

// Calls `pick` with a value of the unsigned type of this size.
template <class Pick>
Handler by_size(unsigned bytes, Pick pick) {
  switch (bytes) {
    case 1:
      return pick(uint8_t{});
    case 2:
      return pick(uint16_t{});
    case 4:
      return pick(uint32_t{});
    case 8:
      return pick(uint64_t{});
    default:
      return nullptr;
  }
}

template <class Pick>
Handler by_wide_size(unsigned bytes, Pick pick) {
  switch (bytes) {
    case 2:
      return pick(uint16_t{});
    case 4:
      return pick(uint32_t{});
    case 8:
      return pick(uint64_t{});
    default:
      return nullptr;
  }
}

}  // namespace slalom::vm
