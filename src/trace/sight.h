// Sight: the part of a target that slalom does not see. UncontrolledAct: something that a target does and
// slalom does not control.
//
// An unseen access is no choice point, and executions do not differ by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slalom {

struct Sight {
  enum class Extent : uint8_t {
    Everything,  // toys, kernels, and programs built with -fsanitize=thread
    Parts,       // a program whose `unseen` parts were built without it
    Nothing,     // a program built without it: only locks, waits and the like are visible
  };
  Extent extent = Extent::Everything;
  std::vector<std::string> unseen;     // the user's own files and libraries
  std::vector<std::string> libraries;  // system libraries other than the C and C++ runtimes
};

struct UncontrolledAct {
  std::string text;  // a sentence
  // False: it harms replays or is bad style, but slalom still executes all orders.
  bool leaves_orders_out = true;
  bool operator==(const UncontrolledAct&) const = default;
};

}  // namespace slalom
