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

// Operations that the whole machine has retired: visible operations of a program, instructions of a kernel.
// Events, evidence and step limits count in steps.
using Step = Strong<struct StepTag>;
// Retired operations at which the machine may stop to ask. Strategies count in positions. All operations of a
// program are positions; of a kernel's instructions, those that the choice policy names.
using Position = Strong<struct PositionTag>;
using Place = Strong<struct PlaceTag>;        // a program counter, as Names understands it
using ObjectId = Strong<struct ObjectIdTag>;  // a memory granule (its address) or a synchronisation object

}  // namespace slalom
