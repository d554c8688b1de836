// Sight and UncontrolledAct: what of a target is not seen, and what it does that is not controlled.
//
// An access that is not seen is no choice point, and no two executions differ by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slalom {

struct Sight {
  enum class Of : uint8_t {
    Everything,  // toys, kernels, programs that were built with -fsanitize=thread
    Parts,       // a program of which `unseen` was built without it
    Nothing,     // a program that was built without it: locks, waits and the like are all that shows
  };
  Of of = Of::Everything;
  std::vector<std::string> unseen;     // the user's own files and libraries
  std::vector<std::string> libraries;  // of the system, beside the C and C++ runtimes
};

struct UncontrolledAct {
  std::string text;               // a sentence
  bool leaves_orders_out = true;  // false: it harms replays or is bad style, but all orders are executed
  bool operator==(const UncontrolledAct&) const = default;
};

}  // namespace slalom
