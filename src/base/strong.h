// Strong<Tag>: a 64-bit number that cannot be confused with a number of another kind.
#pragma once

#include <compare>
#include <cstdint>

namespace slalom {

template <typename Tag>
struct Strong {
  uint64_t raw = 0;
  constexpr auto operator<=>(const Strong&) const = default;
};

using Step = Strong<struct StepTag>;          // number of operations that the whole machine has retired
using Place = Strong<struct PlaceTag>;        // a program counter, as Names understands it
using ObjectId = Strong<struct ObjectIdTag>;  // a memory granule (its address) or a synchronisation object

}  // namespace slalom
