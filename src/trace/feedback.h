// Feedback: what an execution has shown that later ones should know. Merged at fixed points of a search, so
// that it is the same on any number of workers.
#pragma once

#include <vector>

#include "base/strong.h"

namespace slalom {

struct Feedback {
  std::vector<Place> places;   // that should be choice points, beyond those of the policy; sorted
  std::vector<Place> atomics;  // atomic operations that were made, if Inputs::looks; sorted
  bool guessed = false;        // the machine took an agent to wait because of what it did (a CPU that spins)
};

}  // namespace slalom
